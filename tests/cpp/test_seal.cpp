#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <vector>

#include "base/text.h"
#include "files.h"
#include "storage/seal.h"

using namespace tn;

namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  for (unsigned char c : bytes) text += format("{:02x}", c);
  return text;
}

/// A data folder that lives as long as the test.
struct DataFolder : Folder {
  DataFolder() {
    const char* old = std::getenv("XDG_DATA_HOME");
    if (old) before = old;
    setenv("XDG_DATA_HOME", path.c_str(), 1);
  }
  ~DataFolder() {
    before.empty() ? unsetenv("XDG_DATA_HOME") : setenv("XDG_DATA_HOME", before.c_str(), 1);
  }
  std::string key() const { return path + "/tenon/key"; }
  std::string before;
};

}  // namespace

TEST_CASE("sha256: published values") {
  CHECK(hex(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex(sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hex(sha256(std::string(1000000, 'a'))) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("hmac: published values") {
  CHECK(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hex(hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hex(hmac_sha256(std::string(131, '\xaa'),
                        "Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("seal: fits what it was made of, with this user's key only") {
  std::string foreign;
  {
    DataFolder data;
    CHECK_FALSE(seal_fits("code", std::string(32, 'x')));
    CHECK_FALSE(fs::exists(data.key()));  // looking makes no key
    foreign = seal_of("code");
    CHECK(seal_fits("code", foreign));
    struct stat s;
    REQUIRE(stat(data.key().c_str(), &s) == 0);
    CHECK((s.st_mode & 0777) == 0600);
    CHECK(s.st_size == 32);
  }
  DataFolder data;
  std::string seal = seal_of("code");
  CHECK(seal.size() == 32);
  CHECK(seal == seal_of("code"));
  CHECK(seal_fits("code", seal));
  CHECK_FALSE(seal_fits("code", foreign));
  CHECK_FALSE(seal_fits("Code", seal));
  CHECK_FALSE(seal_fits("code", seal.substr(1)));
  CHECK_FALSE(seal_fits("code", ""));
}

TEST_CASE("seal: there is none where the key is not this user's secret") {
  DataFolder data;
  std::string seal = seal_of("code");
  auto refused = [&] { return seal_of("code").empty() && !seal_fits("code", seal); };
  CHECK_FALSE(refused());
  for (mode_t mode : {0640, 0604, 0620, 0602}) {
    chmod(data.key().c_str(), mode);
    CHECK(refused());
  }
  chmod(data.key().c_str(), 0600);
  CHECK_FALSE(refused());
  fs::rename(data.key(), data.path + "/elsewhere");
  fs::create_symlink(data.path + "/elsewhere", data.key());
  CHECK(refused());
  for (size_t size : {0, 31, 33}) {
    fs::remove(data.key());
    spill(data.key(), std::string(size, 'k'));
    chmod(data.key().c_str(), 0600);
    CHECK(refused());
  }
  setenv("XDG_DATA_HOME", "/proc/absent", 1);
  CHECK(refused());
}

TEST_CASE("seal: processes that make the key at the same time have one") {
  DataFolder data;
  std::vector<pid_t> children;
  for (int k = 0; k < 8; ++k)
    children.push_back(spawn([&] { spill(format("{}/seal{}", data.path, k), seal_of("code")); }));
  for (pid_t child : children) CHECK(status_of(child) == 0);
  std::string seal = seal_of("code");
  for (int k = 0; k < 8; ++k) CHECK(slurp(format("{}/seal{}", data.path, k)) == seal);
  CHECK(std::distance(fs::directory_iterator(data.path + "/tenon"), {}) == 1);  // no parts of keys
}
