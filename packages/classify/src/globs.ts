import picomatch from 'picomatch'
import { ClassifyError } from './errors.ts'

/** Limit of patterns in one choice. */
export const MAX_GLOBS = 256
/** Limit of a pattern's length, in characters. */
export const MAX_GLOB_CHARS = 512

/**
 * A test of names against globs: true when one of them matches the whole path. `*` and `?` stay within a folder, `**`
 * crosses folders, `[a-z]` is one character, `{a,b}` an alternative. There is no negation. `anyCase` ignores case.
 * @throws ClassifyError `E_BAD_GLOB` for an empty, overlong or malformed pattern, and for more than {@link MAX_GLOBS}
 */
export function globTest(patterns: readonly string[], anyCase = false): (name: string) => boolean {
  if (patterns.length > MAX_GLOBS) throw badGlob(`${patterns.length} patterns are too many; at most ${MAX_GLOBS}`)
  const tests = patterns.map((pattern) => {
    if (pattern === '') throw badGlob('a pattern is empty')
    const shown = JSON.stringify(pattern.slice(0, 80))
    if (pattern.length > MAX_GLOB_CHARS)
      throw badGlob(`the pattern ${shown} is longer than ${MAX_GLOB_CHARS} characters`)
    try {
      return picomatch(pattern, {
        windows: false,
        dot: true,
        nonegate: true,
        noextglob: true,
        strictBrackets: true,
        nocase: anyCase
      })
    } catch (cause) {
      throw badGlob(`the pattern ${shown} is malformed: ${(cause as Error).message}`, cause)
    }
  })
  return (name) => tests.some((test) => test(name))
}

const badGlob = (message: string, cause?: unknown): ClassifyError =>
  new ClassifyError('E_BAD_GLOB', message, {}, cause === undefined ? undefined : { cause })
