// Command line tool: looks into Lance files, checks tables.
#include <iostream>
#include <string>
#include <vector>

#include "tools/commands.h"

namespace {

using glaive::tools::Command;

constexpr Command kCommands[] = {
    {"dump", "FILE",
     "prints footer, schema, columns, pages and encodings of a Lance file; what a log\n"
     "      entry (*.arrow) or a shard manifest (*.binpb) below _mem_wal/ says",
     glaive::tools::RunDump},
    {"verify", "PATH [--decode] [--repair]",
     "checks that the files of a table are there and whole; --decode reads every value,\n"
     "      --repair commits a version without the rows that are lost",
     glaive::tools::RunVerify},
    {"lsm",
     "stats|flush|compact|collect|checkpoint PATH [--grace DURATION] "
     "[--max-generations N]",
     "shows the LSM write path of a table, makes generations of what is in the log, "
     "merges\n"
     "      generations into the base, removes what is merged and older than the grace",
     glaive::tools::RunLsm},
    {"cat", "FILE OUT.arrow [--batch ROWS] [--take ROW,ROW,...] [--columns A,B]", "",
     glaive::tools::RunCat},
    {"encode", "IN.arrow OUT.lance [--version V] [--page-bytes N] [--batch-rows N]", "",
     glaive::tools::RunEncode},
};

int Usage(std::ostream& out, int code) {
  out << "usage: glaive COMMAND ...\n\n";
  for (const Command& command : kCommands) {
    if (command.summary.empty()) continue;
    out << "  glaive " << command.name << " " << command.arguments << "\n      "
        << command.summary << "\n";
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) return Usage(std::cerr, 2);
  if (arguments[0] == "help" || arguments[0] == "--help") return Usage(std::cout, 0);
  for (const Command& command : kCommands) {
    if (command.name != arguments[0]) continue;
    glaive::Status status = command.run(std::span(arguments).subspan(1));
    if (status.ok()) return 0;
    std::cerr << "glaive " << command.name << ": "
              << glaive::ErrorKindName(glaive::KindOf(status)) << ": " << status.message()
              << "\n";
    return 1;
  }
  std::cerr << "glaive: unknown command '" << arguments[0] << "'\n";
  return Usage(std::cerr, 2);
}
