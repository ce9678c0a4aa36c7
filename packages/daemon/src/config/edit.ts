import { access, constants, readlink, realpath, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { KeyedLock } from '@svc/internal-concurrency'
import { makeFolders, nodeFilePort, replaceFile } from '@svc/internal-files'
import { ConfigError } from '../errors.ts'
import { parseConfigText, readConfigText } from './file.ts'
import type { FileConfig } from './keys.ts'
import type { ViewsTable } from './standing.ts'

interface WrittenKeys {
  readonly store: { readonly root?: string; readonly expect?: string }
  readonly swarm: { readonly seed?: boolean; readonly seed_local?: boolean; readonly upload_limit?: number }
}

/** One key of one section, with its new value. */
type Change = { readonly [S in keyof WrittenKeys]: Readonly<Record<S, WrittenKeys[S]>> }[keyof WrittenKeys]

interface SettingLine {
  readonly section: keyof WrittenKeys
  readonly key: string
  /** `key = value` */
  readonly text: string
}

function lineOf(change: Change): SettingLine {
  const [section, values] = Object.entries(change)[0] as [keyof WrittenKeys, Record<string, unknown>]
  const [key, value] = Object.entries(values)[0]!
  return { section, key, text: `${key} = ${JSON.stringify(value)}` }
}

/** The text with one key changed. @throws ConfigError if the edit is not possible (e.g. inline tables) or not valid */
export function withKey(text: string, change: Change, file: string): string {
  const before: FileConfig = parseConfigText(text, file)
  const line = lineOf(change)
  const wanted = { ...before, [line.section]: { ...before[line.section], ...Object.values(change)[0] } }
  for (const edited of edits(text, line)) {
    try {
      // parse the edited text to make sure that this is the only change.
      if (isDeepStrictEqual(parseConfigText(edited, file), wanted)) return edited
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
    }
  }
  throw new ConfigError(
    `${file}: [${line.section}] ${line.key} is written in a way that cannot be changed here; write: ${line.text}`
  )
}

function* edits(text: string, { section, key, text: line }: SettingLine): Generator<string> {
  // lines that end with CRLF keep their carriage return
  const lines = text.split('\n')
  const replaced = (at: number, by: string): string => {
    const [, comment = '', end = ''] = BEHIND.exec(lines[at]!) ?? []
    return lines.toSpliced(at, 1, by + comment + end).join('\n')
  }
  const header = lines.findIndex((each) => new RegExp(`^\\s*\\[\\s*${section}\\s*\\]\\s*(#.*)?\\r?$`).test(each))
  if (header >= 0) {
    const end = lines.findIndex((each, at) => at > header && /^\s*\[/.test(each))
    const inside = lines.slice(0, end < 0 ? lines.length : end)
    const at = inside.findIndex((each, i) => i > header && new RegExp(`^\\s*${key}\\s*=`).test(each))
    const added = line + (lines[header]!.endsWith('\r') ? '\r' : '')
    yield at < 0 ? lines.toSpliced(header + 1, 0, added).join('\n') : replaced(at, line)
  }
  const dotted = lines.findIndex((each) => new RegExp(`^\\s*${section}\\s*\\.\\s*${key}\\s*=`).test(each))
  if (dotted >= 0) yield replaced(dotted, `${section}.${line}`)
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const gap = text === '' || text.endsWith(eol + eol) ? '' : text.endsWith('\n') ? eol : eol + eol
  yield `${text}${gap}[${section}]${eol}${line}${eol}`
}

/** A one-line value's trailing comment, with the blanks before it and the line ending. */
const BEHIND = /^(?:[^=]*=\s*(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s#"']+)(\s*#[^\r]*))?.*?(\r?)$/

const absent = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'

/** The configuration file behind all links, whether or not it exists yet. */
async function realFile(file: string): Promise<string> {
  for (let [at, links] = [file, 0]; ; links++) {
    try {
      return await realpath(at)
    } catch (error) {
      const target = absent(error) && links < 40 ? await readlink(at).catch(() => undefined) : undefined
      if (target === undefined) return at
      at = resolve(dirname(at), target)
    }
  }
}

/** Reports in advance whatever would prevent {@link writeKey}. @throws ConfigError */
export async function checkKeyWritable(file: string, change: Change): Promise<void> {
  withKey(await readConfigText(file, false), change, file)
  for (let folder = dirname(await realFile(file)); ; folder = dirname(folder)) {
    try {
      return await access(folder, constants.W_OK)
    } catch (cause) {
      if (!absent(cause) || folder === dirname(folder))
        throw new ConfigError(`${file}: the configuration cannot be written (${(cause as NodeJS.ErrnoException).code})`)
    }
  }
}

/** One change at a time, so that concurrent changes do not overwrite each other. */
const turns = new KeyedLock()

/** Writes a key atomically and durably. The file keeps its mode, its owner and the link to it. @throws ConfigError */
export function writeKey(file: string, change: Change): Promise<void> {
  const { section, text: line } = lineOf(change)
  return rewrite(file, (text) => withKey(text, change, file), `write ${line} below [${section}] yourself`)
}

/** Replaces the text of the file as {@link writeKey} does. @param hint what to do if that fails */
async function rewrite(file: string, edit: (text: string) => string, hint: string): Promise<void> {
  const real = await realFile(file)
  await turns.run(real, undefined, async () => {
    const before = await readConfigText(file, false)
    const text = edit(before)
    if (text === before) return
    try {
      await makeFolders(dirname(real), 0o700)
      const like = await stat(real).catch(() => undefined)
      await replaceFile(nodeFilePort, real, Buffer.from(text), { like })
    } catch (cause) {
      const { code = 'unknown error' } = cause as NodeJS.ErrnoException
      throw new ConfigError(`${file}: cannot be written (${code}); ${hint}`, { cause })
    }
  })
}

/** Sets the table `[[views]]` of a folder, or removes it. @throws ConfigError as {@link writeKey} */
export function writeView(file: string, path: string, table: ViewsTable | undefined): Promise<void> {
  const hint = table === undefined ? `remove its [[views]] yourself` : `write it as [[views]] yourself`
  return rewrite(file, (text) => withView(text, path, table, file), hint)
}

/** @throws ConfigError where the tables are written in another way */
function withView(text: string, path: string, table: ViewsTable | undefined, file: string): string {
  const before = parseConfigText(text, file)
  const { views = [], ...rest } = before
  const others = views.filter((each) => each.path !== path)
  const wanted = [...others, ...(table === undefined ? [] : [table])]
  const without = withoutTables(
    text,
    views.flatMap((each, i) => (each.path === path ? [i] : []))
  )
  const lines = Object.entries(table ?? {}).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
  const gap = without === '' || without.endsWith('\n\n') ? '' : without.endsWith('\n') ? '\n' : '\n\n'
  const edited = table === undefined ? without : `${without}${gap}[[views]]\n${lines.join('\n')}\n`
  const parsed = parseConfigText(edited, file)
  if (isDeepStrictEqual(parsed, wanted.length === 0 ? rest : { ...rest, views: wanted })) return edited
  throw new ConfigError(`${file}: its [[views]] are written in a way that cannot be changed here`)
}

/** The text without the tables `[[views]]` of these positions. */
function withoutTables(text: string, positions: readonly number[]): string {
  const kept: string[] = []
  let position = -1
  let isInTable = false
  for (const line of text.split('\n')) {
    if (/^\s*\[/.test(line)) {
      isInTable = /^\s*\[\[\s*views\s*\]\]/.test(line)
      if (isInTable) position++
    }
    if (!isInTable || !positions.includes(position)) kept.push(line)
  }
  return kept.join('\n')
}
