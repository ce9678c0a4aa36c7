import { ClassifyError } from './errors.ts'
import { GlobPattern } from './glob-pattern.ts'

const MAX_GLOBS = 256
const MAX_GLOB_CHARS = 512
/** Limit of the length of all patterns that are not plain names. */
const MAX_WILD_CHARS = 4_096

const WILD = /[*?[\]{}\\]/

/**
 * A test of names against globs: true when one of them matches the whole path. `*` and `?` stay within a folder, `**`
 * as a whole segment crosses folders, `[a-z]` and `[!a-z]` are one character, `{a,b}` an alternative, and `\` takes the
 * next character literally. There is no negation. `anyCase` ignores case. Time is at most proportional to the length of
 * the patterns times that of the name.
 * @throws ClassifyError `E_BAD_GLOB` for an empty, overlong or malformed pattern, for more than 256, and
 *   for more than 4,096 characters of patterns that are not plain names
 */
export function globTest(patterns: readonly string[], anyCase = false): (name: string) => boolean {
  if (patterns.length > MAX_GLOBS) throw badGlob(`${patterns.length} patterns are too many; the limit is ${MAX_GLOBS}`)
  const plain = new Set<string>()
  const wild: GlobPattern[] = []
  let wildChars = 0
  for (const pattern of patterns) {
    if (pattern === '') throw badGlob('a pattern is empty')
    if (pattern.length > MAX_GLOB_CHARS)
      throw badGlob(`the pattern ${JSON.stringify(pattern.slice(0, 80))} is longer than ${MAX_GLOB_CHARS} characters`)
    const cased = anyCase ? pattern.toLowerCase() : pattern
    if (!WILD.test(cased)) {
      plain.add(cased)
      continue
    }
    wildChars += pattern.length
    if (wildChars > MAX_WILD_CHARS) throw badGlob(`the patterns are longer than ${MAX_WILD_CHARS} characters together`)
    wild.push(new GlobPattern(cased))
  }
  return (name) => {
    const cased = anyCase ? name.toLowerCase() : name
    return plain.has(cased) || wild.some((glob) => glob.matches(cased))
  }
}

const badGlob = (message: string): ClassifyError => new ClassifyError('E_BAD_GLOB', message)
