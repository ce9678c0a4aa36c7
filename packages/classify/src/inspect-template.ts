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
/** More than any template has. */
const MAX_CALLS = 1_000
/** Checked at once. */
const BATCH_CHARACTERS = 32 * 1024

/**
 * What a Jinja template does that no chat template needs (spec add.60): private attributes, other files, and calls of what a
 * loader's sandbox does not give. In time linear in the text.
 */
export function templateFindings(template: string): readonly string[] {
  const found = new Set<string>()
  const own = new Set<string>()
  const calls = new Map<string, 'function' | 'method'>()
  for (const code of batchesOf(template)) {
    for (const what of readsIn(code)) found.add(what)
    for (const [, name] of code.matchAll(/\bmacro\s+([a-z_]\w*)/gi)) own.add(name!)
    for (const [name, kind] of unusualCallsIn(code)) if (calls.get(name) !== 'method') calls.set(name, kind)
    if (calls.size >= MAX_CALLS) found.add(`calls more than ${MAX_CALLS} functions`)
    if (found.size >= MAX_SAID || calls.size >= MAX_CALLS) break
  }
  for (const [name, kind] of calls) if (kind === 'method' || !own.has(name)) found.add(`calls ${name}()`)
  return [...found].slice(0, MAX_SAID)
}

/** Private attributes, and other files. */
function* readsIn(code: string): Generator<string, void, undefined> {
  for (const [, name] of code.matchAll(/\b(__\w+__)/g)) yield `uses ${name}`
  for (const [, name] of code.matchAll(/\.\s*(_\w*)/g)) yield `uses the private attribute ${name}`
  if (/\|\s*attr\b/.test(code)) yield 'reads attributes by name (attr)'
  for (const [, word] of code.matchAll(/\{%[-+]?\s*(import|include|extends|from)\b/g))
    yield `reads another template (${word})`
}

/** Of what loaders do not give. */
function* unusualCallsIn(code: string): Generator<readonly [string, 'function' | 'method'], void, undefined> {
  for (const [, before, name = ''] of code.matchAll(/([.|]\s*)?\b([a-z_]\w*)\s*\(/gi)) {
    if (before === undefined) {
      if (!FUNCTIONS.has(name) && !WORDS.has(name)) yield [name, 'function']
    } else if (before.startsWith('.') && !METHODS.has(name)) yield [name, 'method']
  }
}

function* batchesOf(template: string): Generator<string, void, undefined> {
  let batch = ''
  for (const block of blocksOf(template)) {
    batch += `${block}\n`
    if (batch.length < BATCH_CHARACTERS) continue
    yield batch
    batch = ''
  }
  yield batch
}

/** The expressions and statements of a template one after the other, with empty texts, and without comments. */
function* blocksOf(template: string): Generator<string, void, undefined> {
  for (let at = template.indexOf('{'); at >= 0 && at < template.length; at = template.indexOf('{', at)) {
    const kind = template[at + 1]
    if (kind !== '{' && kind !== '%' && kind !== '#') {
      at++
      continue
    }
    const close = kind === '{' ? '}}' : `${kind}}`
    if (kind === '#') {
      const end = template.indexOf(close, at)
      at = (end < 0 ? template.length : end) + 2
      continue
    }
    const { code, end } = blockAt(template, at, close)
    yield code
    at = RAW.test(code) ? endOfRaw(template, end) : end + 2
  }
}

/** Of an attribute that is read as an item, in its quotes. */
const PRIVATE_NAME = /^.__\w{1,100}__.$/

/** A block after which all is text, until another one. */
const RAW = /^\{%[-+]?\s*raw\s*[-+]?$/

function endOfRaw(template: string, from: number): number {
  const end = /\{%[-+]?\s*endraw\b/g
  end.lastIndex = from
  return end.exec(template)?.index ?? template.length
}

/** A block without its texts; and where it ends: not within brackets, nor within texts. */
function blockAt(template: string, from: number, close: string): { readonly code: string; readonly end: number } {
  const parts: string[] = []
  let start = from
  let at = from + close.length
  let depth = 0
  while (at < template.length && !(depth === 0 && template.startsWith(close, at))) {
    const quote = template[at]!
    if (quote !== '"' && quote !== "'") {
      if ('([{'.includes(quote)) depth++
      else if (')]}'.includes(quote)) depth = Math.max(0, depth - 1)
      at++
      continue
    }
    const end = endOfText(template, at)
    const isPrivate = end - at < 120 && PRIVATE_NAME.test(template.slice(at, end))
    parts.push(template.slice(start, at), isPrivate ? template.slice(at, end) : '""')
    at = start = end
  }
  parts.push(template.slice(start, at))
  return { code: parts.join(''), end: at }
}

/** Behind the text that begins at `from`. */
function endOfText(template: string, from: number): number {
  const quote = template[from]
  for (let at = from + 1; at < template.length; at++) {
    if (template[at] === '\\') at++
    else if (template[at] === quote) return at + 1
  }
  return template.length
}
