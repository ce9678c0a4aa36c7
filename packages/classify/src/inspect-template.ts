/** Functions that loaders give to chat templates, and those of Jinja itself. */
const FUNCTIONS: ReadonlySet<string> = new Set(
  'raise_exception strftime_now range namespace dict caller loop cycler joiner super'.split(' ')
)
/** Methods of the values that templates see: texts, lists, mappings. */
const METHODS: ReadonlySet<string> = new Set(
  (
    'append capitalize copy count cycle endswith extend find format get index insert isdigit isalpha isalnum isspace islower isupper items join ' +
    'keys lower lstrip partition pop removeprefix removesuffix replace rfind rpartition rsplit rstrip setdefault split splitlines startswith strip ' +
    'title update upper values zfill changed'
  ).split(' ')
)
/** Words of the language, which may stand before a bracket. */
const WORDS: ReadonlySet<string> = new Set(
  'if elif else for in is not and or set macro call filter do print return with block raw generation defined none true false recursive'.split(
    ' '
  )
)
const MAX_SAID = 8

/**
 * What a Jinja template does that no chat template needs (spec add.60): private attributes, other files, and calls of what a
 * loader's sandbox does not give. In time linear in the text.
 */
export function templateFindings(template: string): readonly string[] {
  const found = new Set<string>()
  const code = codeOf(template)
  for (const [, name] of code.matchAll(/\b(__\w+__)/g)) found.add(`uses ${name}`)
  for (const [, name] of code.matchAll(/\.\s*(_\w*)/g)) found.add(`uses the private attribute ${name}`)
  if (/\|\s*attr\b/.test(code)) found.add('reads attributes by name (attr)')
  for (const [, word] of code.matchAll(/\{%[-+]?\s*(import|include|extends|from)\b/g))
    found.add(`reads another template (${word})`)
  const own = new Set<string>()
  for (const [, name] of code.matchAll(/\bmacro\s+([a-z_]\w*)/gi)) own.add(name!)
  for (const [, before, name] of code.matchAll(/([.|]\s*)?\b([a-z_]\w*)\s*\(/gi)) {
    if (before?.startsWith('|')) continue
    if (before === undefined ? !FUNCTIONS.has(name!) && !WORDS.has(name!) && !own.has(name!) : !METHODS.has(name!))
      found.add(`calls ${name}()`)
  }
  return [...found].slice(0, MAX_SAID)
}

/** The expressions and statements of a template, with empty texts and without comments. */
function codeOf(template: string): string {
  const parts: string[] = []
  for (let at = template.indexOf('{'); at >= 0 && at < template.length; at = template.indexOf('{', at)) {
    const kind = template[at + 1]
    if (kind !== '{' && kind !== '%' && kind !== '#') {
      at++
      continue
    }
    const close = kind === '{' ? '}}' : `${kind}}`
    const end = kind === '#' ? template.indexOf(close, at) : endOf(template, at + 2, close)
    const stop = end < 0 ? template.length : end
    if (kind !== '#')
      parts.push(template.slice(at, stop).replace(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/gs, '""'), close, '\n')
    at = stop + 2
  }
  return parts.join('')
}

/** Where a block ends: its end may also stand in a text. */
function endOf(template: string, from: number, close: string): number {
  let quote = ''
  for (let at = from; at < template.length; at++) {
    const character = template[at]!
    if (quote !== '') {
      if (character === '\\') at++
      else if (character === quote) quote = ''
    } else if (character === '"' || character === "'") quote = character
    else if (template.startsWith(close, at)) return at
  }
  return -1
}
