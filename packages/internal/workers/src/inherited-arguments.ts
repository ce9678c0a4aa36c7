const WITH_VALUE = new Set(['-e', '--eval', '-p', '--print', '-pe'])

/**
 * The process's own Node options for a thread, except those that name the main program: a thread would run that instead
 * of its file.
 */
export function inheritedArguments(given: readonly string[] = process.execArgv): string[] {
  const kept: string[] = []
  for (let at = 0; at < given.length; at++) {
    const argument = given[at]!
    if (WITH_VALUE.has(argument)) at++
    else if (!/^--(?:input-type|eval|print)\b/.test(argument)) kept.push(argument)
  }
  return kept
}
