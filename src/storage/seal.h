#pragma once
// Seals: authenticate machine code in files that this user wrote on this machine.
//
// The seal is an HMAC-SHA256, with a key that only this user can read (in the user's data folder,
// made when it is first needed), over what would be executed. A seal cannot be
// made without the key.
#include <string>
#include <string_view>

namespace tn {

/// The seal of these bytes; "" where no key can be had (no home, a read-only disk).
std::string seal_of(std::string_view bytes);
bool seal_fits(std::string_view bytes, std::string_view seal);

/// SHA-256, 32 bytes.
std::string sha256(std::string_view bytes);
std::string hmac_sha256(std::string_view key, std::string_view bytes);

}  // namespace tn
