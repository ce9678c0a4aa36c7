import type { TextFile } from './tree.ts'

export interface StyleFault {
  readonly rule: 'spelling' | 'comment-style'
  readonly path: string
  readonly line: number
  readonly message: string
}

const STEMS =
  'recogn normal organ util synchron serial harmon capital author initial minim maxim summar priorit random optim canonical character general special standard material final quant token'.split(
    ' '
  )
/** `recognise` and `Recognised` in any word, also `RECOGNISED` in constants. */
const anyCase = (stem: string): string => `[${stem[0]}${stem[0]!.toUpperCase()}]${stem.slice(1)}`
const ENDS = ['e', 'es', 'ed', 'er', 'ers', 'ing', 'ation', 'ations', 'able']
const ISE = new RegExp(
  `(?:${STEMS.map(anyCase).join('|')})is(?=(?:${ENDS.join('|')})(?![a-z]))|(?:${STEMS.join('|').toUpperCase()})IS(?=(?:${ENDS.join('|').toUpperCase()})(?![A-Z]))`,
  'g'
)
/** A reason in plans and in the vectors, and a field of requests, which clients read. */
const WIRE = /(['"`])unrecognised\1|\brecognise\b/g
/** Others wrote these, or they are values of the contract. */
const NOT_OURS = /^vectors\/.*\.json$|\/licence-texts\.ts$|\/CHANGELOG\.md$|^scripts\/structure\/style\.ts$/

/** The first words of remarks that are names. */
const NAMES: ReadonlySet<string> = new Set(['Linux', 'Node', 'Swift', 'Windows'])
/** Programs whose names begin in lower case. */
const PROGRAMS = /^(?:svcd?|pnpm|npm|llama|libtorrent|webtorrent|install|rclone|containerd)\b/

/** One spelling, and one style of line comments: a remark within code begins in lower case, one at the left margin is a sentence. */
export const checkStyle = (file: TextFile): StyleFault[] => [
  ...checkSpelling(file),
  ...(/\.tsx?$/.test(file.path) ? checkComments(file) : [])
]

function checkSpelling({ path, text }: TextFile): StyleFault[] {
  if (NOT_OURS.test(path)) return []
  return text.split('\n').flatMap((line, index) =>
    [...line.replace(WIRE, '').matchAll(ISE)].map(({ 0: stem }): StyleFault => {
      const message = `"${stem}": we write -ize`
      return { rule: 'spelling', path, line: index + 1, message }
    })
  )
}

function checkComments({ path, text }: TextFile): StyleFault[] {
  const lines = text.split('\n')
  return lines.flatMap((line, index): StyleFault[] => {
    const [, margin, word = ''] = /^(\s*)\/\/ ([A-Za-z][a-z]*)(?=[ ,:;.'’!?)]|$)/.exec(line) ?? []
    if (margin === undefined || /^\s*\/\/ /.test(lines[index - 1] ?? '')) return []
    const isUpper = word[0] !== word[0]?.toLowerCase()
    const isRight = margin === '' ? isUpper || PROGRAMS.test(word) : !isUpper || NAMES.has(word)
    if (isRight) return []
    const message =
      margin === ''
        ? 'a comment at the left margin begins like a sentence'
        : 'a remark within code begins in lower case, or with a name'
    return [{ rule: 'comment-style', path, line: index + 1, message }]
  })
}
