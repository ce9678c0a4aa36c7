/** What a module's code needs to be found and run, and what it may say: the options with a value of their own, and the others. */
const WITH_VALUE = new Set(['-C', '--conditions', '-r', '--require', '--import', '--loader', '--disable-warning'])
const KEPT =
  /^--(?:conditions|require|import|loader|disable-warning|(?:no-)?(?:experimental-)?(?:strip-types|transform-types|require-module)|no-warnings|no-deprecation|(?:trace|throw)-(?:warnings|deprecation)|enable-source-maps|preserve-symlinks)(?:=|$)/

/**
 * Those of the process's own Node options that its threads are to have as well. Others are for the process, name its main program,
 * which a thread would run instead of its file, or are V8's (`--max-old-space-size`), with which Node starts no thread.
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
