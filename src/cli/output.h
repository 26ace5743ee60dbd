#pragma once
// What commands read and write: text, tables, JSON.
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tn {

using Json = nlohmann::ordered_json;

/// Writes to the standard output. Fails when that cannot take it; a closed pipe ends the command.
void write_out(std::string_view text);
void write_json(const Json& json);

/// Rows with columns that line up; the last one is as long as it is.
std::string table(const std::vector<std::vector<std::string>>& rows);

/// "1.23 ms".
std::string seconds_text(double seconds);

/// The text of a file; "-" is the standard input.
std::string read_text(const std::string& path);
/// Whether a file is an executable, rather than text.
bool is_executable(const std::string& path);
/// Replaces the file.
void write_text(const std::string& path, std::string_view text);

}  // namespace tn
