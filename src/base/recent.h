#pragma once
// Recent: values by key, of which the least recently used are dropped. It does not lock.
#include <functional>
#include <list>
#include <unordered_map>
#include <utility>

namespace tn {

template <class K, class V, class Hash = std::hash<K>>
class Recent {
 public:
  /// The value, which counts as used, or null.
  V* find(const K& key) {
    auto at = places_.find(&key);
    if (at == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, at->second);
    return &at->second->second;
  }
  /// Whether the key is new. Otherwise its value is replaced.
  bool add(K key, V value) {
    if (V* known = find(key)) {
      *known = std::move(value);
      return false;
    }
    entries_.emplace_front(std::move(key), std::move(value));
    places_.emplace(&entries_.front().first, entries_.begin());
    return true;
  }
  /// Removes the least recently used.
  std::pair<K, V> take_last() {
    places_.erase(&entries_.back().first);
    std::pair<K, V> last = std::move(entries_.back());
    entries_.pop_back();
    return last;
  }
  void clear() { places_.clear(), entries_.clear(); }

  size_t size() const { return entries_.size(); }
  /// From the most recently used on.
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  using Entries = std::list<std::pair<K, V>>;
  struct ByValue {
    size_t operator()(const K* key) const { return Hash()(*key); }
    bool operator()(const K* a, const K* b) const { return *a == *b; }
  };
  Entries entries_;
  std::unordered_map<const K*, typename Entries::iterator, ByValue, ByValue> places_;
};

}  // namespace tn
