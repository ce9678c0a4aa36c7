import { isDeepStrictEqual } from 'node:util'
import { errnoOf } from '@svc/internal-errors'
import { requireWritable, rewriteFile } from '@svc/internal-files'
import { type KeyLine, keyEdits, tableEdit } from '@svc/internal-toml'
import { ConfigError } from '../errors.ts'
import { parseConfigText, readConfigText } from './file.ts'
import type { FileConfig } from './keys.ts'
import type { ViewsTable } from './standing.ts'

interface WrittenKeys {
  readonly store: { readonly root?: string; readonly expect?: string }
  readonly swarm: { readonly seed?: boolean; readonly seed_local?: boolean; readonly upload_limit?: number }
  readonly network: { readonly download_limit?: number }
}

/** One key of one section, with its new value. */
type Change = { readonly [S in keyof WrittenKeys]: Readonly<Record<S, WrittenKeys[S]>> }[keyof WrittenKeys]

function lineOf(change: Change): KeyLine & { readonly section: keyof WrittenKeys } {
  const [section, values] = Object.entries(change)[0] as [keyof WrittenKeys, Record<string, unknown>]
  const [key, value] = Object.entries(values)[0]!
  return { section, key, text: `${key} = ${JSON.stringify(value)}` }
}

/** The text with one key changed. @throws ConfigError if the edit is not possible (e.g. inline tables) or not valid */
export function withKey(text: string, change: Change, file: string): string {
  const before: FileConfig = parseConfigText(text, file)
  const line = lineOf(change)
  const wanted = { ...before, [line.section]: { ...before[line.section], ...Object.values(change)[0] } }
  for (const edited of keyEdits(text, line)) {
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

/** Reports in advance whatever would prevent {@link writeKey}. @throws ConfigError */
export async function checkKeyWritable(file: string, change: Change): Promise<void> {
  withKey(await readConfigText(file, false), change, file)
  await requireWritable(file).catch((cause: unknown) => {
    throw new ConfigError(`${file}: the configuration cannot be written (${errnoOf(cause)})`, { cause })
  })
}

/** Writes a key atomically and durably. The file keeps its mode, its owner and the link to it. @throws ConfigError */
export function writeKey(file: string, change: Change): Promise<void> {
  const { section, text: line } = lineOf(change)
  return rewrite(file, (text) => withKey(text, change, file), `write ${line} below [${section}] yourself`)
}

/** Sets the table `[[views]]` of a folder, or removes it. @throws ConfigError as {@link writeKey} */
export function writeView(file: string, path: string, table: ViewsTable | undefined): Promise<void> {
  const hint = table === undefined ? `remove its [[views]] yourself` : `write it as [[views]] yourself`
  return rewrite(file, (text) => withView(text, path, table, file), hint)
}

/** @param hint what to do if that fails */
function rewrite(file: string, edit: (text: string) => string, hint: string): Promise<void> {
  const edited = async (): Promise<string | undefined> => {
    const before = await readConfigText(file, false)
    const text = edit(before)
    return text === before ? undefined : text
  }
  const refusal = (cause: unknown): ConfigError =>
    new ConfigError(`${file}: cannot be written (${errnoOf(cause) ?? 'unknown error'}); ${hint}`, { cause })
  return rewriteFile(file, edited, refusal)
}

/** @throws ConfigError where the tables are written in another way */
function withView(text: string, path: string, table: ViewsTable | undefined, file: string): string {
  const { views = [], ...rest } = parseConfigText(text, file)
  const wanted = [...views.filter((each) => each.path !== path), ...(table === undefined ? [] : [table])]
  const removed = views.flatMap((each, i) => (each.path === path ? [i] : []))
  const edited = tableEdit(text, 'views', removed, table as Readonly<Record<string, unknown>> | undefined)
  if (isDeepStrictEqual(parseConfigText(edited, file), wanted.length === 0 ? rest : { ...rest, views: wanted }))
    return edited
  throw new ConfigError(`${file}: its [[views]] are written in a way that cannot be changed here`)
}
