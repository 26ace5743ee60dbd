"""The workloads by name, in the order of the table."""

from workloads import arrays, gpt, mlp, products, resnet

WORKLOADS = {
    workload.name: workload
    for group in (arrays, products, mlp, gpt, resnet)
    for workload in group.WORKLOADS
}
