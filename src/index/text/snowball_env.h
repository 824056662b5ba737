// What the stemmers that the build generates stand on: a word with a cursor, and the
// commands of the Snowball language. tools/make_stemmers.py gives the names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace glaive::text::snowball {

// One of several endings (or beginnings) that are looked for at once. Tables are in
// ascending order, those for endings by their characters from behind.
template <typename Stemmer>
struct Among {
  std::u32string_view text;
  int shorter;  // the longest other one that this one begins (ends) with, or -1
  int result;
  bool (Stemmer::*condition)();  // or null
};

// `Stemmer` is derived of this.
template <typename Stemmer>
class Env {
 public:
  void Run(std::u32string* word) {
    current.swap(*word);
    limit = ket = length();
    static_cast<Stemmer*>(this)->stem();
    current.swap(*word);
  }

 protected:
  using Text = std::u32string_view;

  std::u32string current;
  int cursor = 0;
  int limit = 0;
  int limit_backward = 0;
  int bra = 0;
  int ket = 0;

  int length() const { return static_cast<int>(current.size()); }
  char32_t At(int i) const { return current[static_cast<size_t>(i)]; }

  static bool In(Text set, char32_t c) { return set.find(c) != Text::npos; }

  bool in_grouping(Text set) { return Step(cursor < limit && In(set, At(cursor)), 1); }
  bool out_grouping(Text set) { return Step(cursor < limit && !In(set, At(cursor)), 1); }
  bool in_grouping_b(Text set) {
    return Step(cursor > limit_backward && In(set, At(cursor - 1)), -1);
  }
  bool out_grouping_b(Text set) {
    return Step(cursor > limit_backward && !In(set, At(cursor - 1)), -1);
  }
  // To the next character that is not in the set, or is.
  bool go_in_grouping(Text set) { return Go(set, true); }
  bool go_out_grouping(Text set) { return Go(set, false); }
  bool go_in_grouping_b(Text set) { return GoBack(set, true); }
  bool go_out_grouping_b(Text set) { return GoBack(set, false); }

  bool eq_s(Text text) {
    return Step(Ahead().substr(0, text.size()) == text, Size(text));
  }
  bool eq_s_b(Text text) { return Step(Behind().ends_with(text), -Size(text)); }

  template <size_t N>
  int find_among(const Among<Stemmer> (&table)[N]) {
    const Text ahead = Ahead();
    const auto* after =
        std::upper_bound(table, table + N, ahead,
                         [](Text a, const Among<Stemmer>& b) { return a < b.text; });
    // Whatever the word goes on with is what the one before begins with.
    return Longest(
        table, static_cast<int>(after - table) - 1,
        [&](Text text) { return ahead.starts_with(text); }, 1);
  }
  template <size_t N>
  int find_among_b(const Among<Stemmer> (&table)[N]) {
    const Text behind = Behind();
    const auto* after =
        std::upper_bound(table, table + N, behind, [](Text a, const Among<Stemmer>& b) {
          return std::lexicographical_compare(a.rbegin(), a.rend(), b.text.rbegin(),
                                              b.text.rend());
        });
    return Longest(
        table, static_cast<int>(after - table) - 1,
        [&](Text text) { return behind.ends_with(text); }, -1);
  }

  void slice_from(Text text) {
    Replace(bra, ket, text);
    ket = bra + Size(text);
  }
  void slice_del() { slice_from(Text()); }
  void insert(int from, int to, Text text) {
    const int more = Replace(from, to, text);
    if (from <= bra) bra += more;
    if (from <= ket) ket += more;
  }
  std::u32string slice_to() const {
    return current.substr(static_cast<size_t>(bra), static_cast<size_t>(ket - bra));
  }

 private:
  static int Size(Text text) { return static_cast<int>(text.size()); }
  Text Ahead() const {
    const int from = std::min(cursor, limit);
    return Text(current).substr(static_cast<size_t>(from),
                                static_cast<size_t>(limit - from));
  }
  Text Behind() const {
    const int from = std::min(cursor, limit_backward);
    return Text(current).substr(static_cast<size_t>(from),
                                static_cast<size_t>(cursor - from));
  }
  bool Step(bool yes, int by) {
    if (yes) cursor += by;
    return yes;
  }
  bool Go(Text set, bool in) {
    while (cursor < limit && In(set, At(cursor)) == in) ++cursor;
    return cursor < limit;
  }
  bool GoBack(Text set, bool in) {
    while (cursor > limit_backward && In(set, At(cursor - 1)) == in) --cursor;
    return cursor > limit_backward;
  }
  template <typename Fits>
  int Longest(const Among<Stemmer>* table, int i, const Fits& fits, int direction) {
    const int start = cursor;
    for (; i >= 0; i = table[i].shorter) {
      const Among<Stemmer>& entry = table[i];
      if (!fits(entry.text)) continue;
      const int end = start + direction * Size(entry.text);
      cursor = end;
      if (entry.condition == nullptr) return entry.result;
      if ((static_cast<Stemmer*>(this)->*entry.condition)()) {
        cursor = end;
        return entry.result;
      }
    }
    cursor = start;
    return 0;
  }
  int Replace(int from, int to, Text text) {
    const int more = Size(text) - (to - from);
    current.replace(static_cast<size_t>(from), static_cast<size_t>(to - from), text);
    limit += more;
    if (cursor >= to) {
      cursor += more;
    } else if (cursor > from) {
      cursor = from;
    }
    return more;
  }
};

}  // namespace glaive::text::snowball
