/** Options by which modules are found, run, and report: those whose value is the next argument, and the others. */
const WITH_VALUE = new Set(['-C', '--conditions', '-r', '--require', '--import', '--loader', '--disable-warning'])
const KEPT =
  /^--(?:conditions|require|import|loader|disable-warning|(?:no-)?(?:experimental-)?(?:strip-types|transform-types|require-module)|no-warnings|no-deprecation|(?:trace|throw)-(?:warnings|deprecation)|enable-source-maps|preserve-symlinks)(?:=|$)/

/**
 * The Node options of the process that its threads inherit. Others are for the process only, name its main program, which a thread would
 * run instead of its own file, or are V8's (`--max-old-space-size`), with which Node refuses to start a thread.
 */
export function inheritedArguments(given: readonly string[] = process.execArgv): string[] {
  const kept: string[] = []
  for (let at = 0; at < given.length; at++) {
    const argument = given[at]!
    if (WITH_VALUE.has(argument)) kept.push(argument, given[++at] ?? '')
    else if (KEPT.test(argument)) kept.push(argument)
  }
  return kept
}
