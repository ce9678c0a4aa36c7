import { access, chmod, constants, readFile, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { makeFolders, nodeFilePort, replaceFile } from '@svc/internal-files'
import { ConfigError } from '../errors.ts'
import { parseConfigText } from './file.ts'
import type { FileConfig } from './keys.ts'

/** The keys that our own commands write. */
interface WrittenKeys {
  readonly store: { readonly root?: string; readonly expect?: string }
  readonly swarm: { readonly seed?: boolean; readonly seed_local?: boolean }
}

/** One key of one section, with its new value. */
type Change = { readonly [S in keyof WrittenKeys]: Readonly<Record<S, WrittenKeys[S]>> }[keyof WrittenKeys]

interface Line {
  readonly section: keyof WrittenKeys
  readonly key: string
  /** `key = value` */
  readonly text: string
}

function lineOf(change: Change): Line {
  const [section, values] = Object.entries(change)[0] as [keyof WrittenKeys, Record<string, unknown>]
  const [key, value] = Object.entries(values)[0]!
  return { section, key, text: `${key} = ${JSON.stringify(value)}` }
}

/**
 * The text of a configuration with another value of one key; everything else, including comments, is unchanged.
 * @throws ConfigError when it is written in a way that this cannot edit (such as an inline table), or is not a valid
 *   configuration
 */
export function withKey(text: string, change: Change, file: string): string {
  const before: FileConfig = parseConfigText(text, file)
  const line = lineOf(change)
  const wanted = { ...before, [line.section]: { ...before[line.section], ...Object.values(change)[0] } }
  for (const edited of edits(text, line)) {
    try {
      // Parse the edited text to make sure that this is the only change.
      if (isDeepStrictEqual(parseConfigText(edited, file), wanted)) return edited
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
    }
  }
  throw new ConfigError(
    `${file}: [${line.section}] ${line.key} is written in a way that cannot be changed here; write: ${line.text}`
  )
}

function* edits(text: string, { section, key, text: line }: Line): Generator<string> {
  const lines = text.split('\n')
  const header = lines.findIndex((each) => new RegExp(`^\\s*\\[\\s*${section}\\s*\\]\\s*(#.*)?\\r?$`).test(each))
  if (header >= 0) {
    const end = lines.findIndex((each, at) => at > header && /^\s*\[/.test(each))
    const inside = lines.slice(0, end < 0 ? lines.length : end)
    const at = inside.findIndex((each, i) => i > header && new RegExp(`^\\s*${key}\\s*=`).test(each))
    yield (at < 0 ? lines.toSpliced(header + 1, 0, line) : lines.toSpliced(at, 1, line + commentOf(lines[at]!))).join(
      '\n'
    )
  }
  const dotted = lines.findIndex((each) => new RegExp(`^\\s*${section}\\s*\\.\\s*${key}\\s*=`).test(each))
  if (dotted >= 0) yield lines.toSpliced(dotted, 1, `${section}.${line}${commentOf(lines[dotted]!)}`).join('\n')
  const gap = text === '' || text.endsWith('\n\n') ? '' : text.endsWith('\n') ? '\n' : '\n\n'
  yield `${text}${gap}[${section}]\n${line}\n`
}

/** The comment behind a value of one line, with the blanks before it. */
const commentOf = (line: string): string =>
  /^[^=]*=\s*(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s#"']+)(\s*#.*)$/.exec(line)?.[1] ?? ''

const absent = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'

async function readText(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    if (absent(error)) return ''
    throw new ConfigError(`${file}: cannot read the configuration (${(error as NodeJS.ErrnoException).code})`)
  })
}

/** Reports in advance whatever would prevent {@link writeKey}. @throws ConfigError */
export async function checkKeyWritable(file: string, change: Change): Promise<void> {
  withKey(await readText(file), change, file)
  for (let folder = dirname(await realpath(file).catch(() => file)); ; folder = dirname(folder)) {
    try {
      return await access(folder, constants.W_OK)
    } catch (cause) {
      if (!absent(cause) || folder === dirname(folder))
        throw new ConfigError(`${file}: the configuration cannot be written (${(cause as NodeJS.ErrnoException).code})`)
    }
  }
}

/**
 * Writes a key into a configuration file, atomically and durably; the file is made where it is absent, and keeps its
 * mode and the link to it. @throws ConfigError
 */
export async function writeKey(file: string, change: Change): Promise<void> {
  const text = withKey(await readText(file), change, file)
  try {
    const real = await realpath(file).catch(() => file)
    await makeFolders(dirname(real), 0o700)
    const mode = await stat(real).then(
      (found) => found.mode & 0o777,
      () => undefined
    )
    await replaceFile(nodeFilePort, real, Buffer.from(text))
    if (mode !== undefined) await chmod(real, mode)
  } catch (cause) {
    const { code = 'unknown error' } = cause as NodeJS.ErrnoException
    const { section, text: line } = lineOf(change)
    throw new ConfigError(`${file}: cannot be written (${code}); write ${line} below [${section}] yourself`, { cause })
  }
}
