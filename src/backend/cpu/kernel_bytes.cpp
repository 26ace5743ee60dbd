#include "backend/cpu/kernel_bytes.h"

#include "backend/kernel_sizes.h"

namespace tn::cpu {
namespace {

/// The one list of what the bytes hold. All fields by name: a new one does not compile until it is
/// thought of.
template <class Visit, class Numbers, class Text>
void visit_parts(Visit& visit, Numbers& numbers, Text& object) {
  auto& [symbols, units, finish_units, points, scratch_bytes, bypassing_bytes, partial_bytes,
         point_nanoseconds, divided, argument_types] = numbers;
  visit(symbols);
  visit(units);
  visit(finish_units);
  visit(points);
  visit(scratch_bytes);
  visit(bypassing_bytes);
  visit(partial_bytes);
  visit(point_nanoseconds);
  visit(divided);
  visit(argument_types);
  visit(object);
}

bool is_sound(const KernelNumbers& n) {
  for (const SizeProgram* program :
       {&n.units, &n.finish_units, &n.points, &n.scratch_bytes, &n.bypassing_bytes})
    if (!program->is_sound(n.symbols.size())) return false;
  for (DType type : n.argument_types)
    if (static_cast<int>(type) >= kDTypes) return false;
  return true;
}

}  // namespace

std::string kernel_to_bytes(const KernelNumbers& numbers, std::string_view object) {
  KernelWriter writer;
  visit_parts(writer, numbers, object);
  return std::move(writer.bytes);
}

std::shared_ptr<const KernelCode> kernel_from_bytes(std::string_view bytes) {
  try {
    KernelReader reader(bytes);
    KernelNumbers numbers;
    std::string_view object;
    visit_parts(reader, numbers, object);
    if (!is_sound(numbers)) return nullptr;
    return std::make_shared<const KernelCode>(std::as_bytes(std::span(object)), std::move(numbers));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const UserError& e) {  // they end too early, or the loader refuses the object
    if (e.fault() == Fault::memory) throw;
    return nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace tn::cpu
