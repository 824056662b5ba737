// The mutexes behind std::atomic_load, std::atomic_store and their like for shared_ptr.
//
// libstdc++ keeps a few of them for the whole process and picks one by the address of the
// pointer. Arrow takes one at each first access to a column of a batch or to a child of a
// struct. A fork at such a moment leaves the child with a mutex that nobody opens, so a
// fork holds all of them.
#pragma once

namespace glaive {

// One thread at a time. Nothing may be done with atomic shared pointers in between.
void LockSharedPtrs();
void UnlockSharedPtrs();

}  // namespace glaive
