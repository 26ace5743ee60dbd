#pragma once
// The workers that the environment asks for.
namespace tn::mesh {

/// At load: from then on TENON_NUM_WORKERS=4 makes a mesh the default device. Adds the kernels of
/// collectives, which plans refer to.
void install();

}  // namespace tn::mesh
