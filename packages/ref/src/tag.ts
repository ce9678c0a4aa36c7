import { RefError } from './errors.ts'
import { foldAscii } from './fold.ts'
import { quote } from './length.ts'
import { isPlainQuant } from './quant.ts'

const TAG = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/

/** Why a well-formed tag is refused: it could be read as a digest or as a quant (spec ref.11). */
function banned(text: string): string | undefined {
  const folded = foldAscii(text)
  if (folded.startsWith('sha256-') || folded.startsWith('sha256:')) return 'it looks like a digest'
  if (folded.startsWith('ud-') || isPlainQuant(folded)) return 'it looks like a quant'
  return undefined
}

/**
 * A tag: 1 to 128 of `a-z A-Z 0-9 . _ -`, the first a letter, digit or `_`; case is kept. It must not look like a
 * quant or a digest in any case.
 * @returns the text. @throws RefError `E_PARSE`, reason `tag-format` or `tag-banned`.
 */
export function parseTag(text: string): string {
  const why = banned(text)
  if (why !== undefined)
    throw new RefError('tag-banned', `${quote(text)} cannot be a tag: ${why}; choose another name, such as "v1"`)
  if (!TAG.test(text)) {
    throw new RefError(
      'tag-format',
      `bad tag ${quote(text)}: 1 to 128 of a-z A-Z 0-9 . _ - beginning with a letter, a digit or "_"`
    )
  }
  return text
}

/** True for what {@link parseTag} accepts. */
export const isTag = (text: string): boolean => TAG.test(text) && banned(text) === undefined
