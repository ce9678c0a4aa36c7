import { createRequire } from 'node:module'

/**
 * Loads a package when it is first needed, such as an HTTP client that most processes never use. By `require`: an ES module
 * whose evaluation failed once, for want of descriptors for example, fails for ever, while this is loaded again.
 * @param from `import.meta.url` of the caller, whose dependency it is
 */
export const loadAgain = <Module>(from: string, name: string): Module => createRequire(from)(name) as Module
