import { access, chmod, constants, readFile, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { makeFolders, nodeFilePort, replaceFile } from '@svc/internal-files'
import { ConfigError } from '../errors.ts'
import { parseConfigText } from './file.ts'

/** A key of `[store]` that the daemon's own commands write. */
type StoreKey = 'root' | 'expect'

/**
 * The text of a configuration with another value of a key of `[store]`; everything else, including comments, is unchanged.
 * @throws ConfigError when it is written in a way that this cannot edit (such as an inline table), or is not a valid
 *   configuration
 */
export function withStoreKey(text: string, key: StoreKey, value: string, file: string): string {
  const before = parseConfigText(text, file)
  const wanted = { ...before, store: { ...before.store, [key]: value } }
  const line = `${key} = ${JSON.stringify(value)}`
  for (const edited of edits(text, key, line)) {
    try {
      // Parse the edited text to make sure that this is the only change.
      if (isDeepStrictEqual(parseConfigText(edited, file), wanted)) return edited
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
    }
  }
  throw new ConfigError(`${file}: [store] ${key} is written in a way that cannot be changed here; write: ${line}`)
}

function* edits(text: string, name: StoreKey, line: string): Generator<string> {
  const lines = text.split('\n')
  const header = lines.findIndex((each) => /^\s*\[\s*store\s*\]\s*(#.*)?\r?$/.test(each))
  if (header >= 0) {
    const end = lines.findIndex((each, at) => at > header && /^\s*\[/.test(each))
    const inside = lines.slice(0, end < 0 ? lines.length : end)
    const key = inside.findIndex((each, at) => at > header && new RegExp(`^\\s*${name}\\s*=`).test(each))
    yield (key < 0 ? lines.toSpliced(header + 1, 0, line) : lines.toSpliced(key, 1, line)).join('\n')
  }
  const dotted = lines.findIndex((each) => new RegExp(`^\\s*store\\s*\\.\\s*${name}\\s*=`).test(each))
  if (dotted >= 0) yield lines.toSpliced(dotted, 1, `store.${line}`).join('\n')
  const gap = text === '' || text.endsWith('\n\n') ? '' : text.endsWith('\n') ? '\n' : '\n\n'
  yield `${text}${gap}[store]\n${line}\n`
}

const absent = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'

async function readText(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    if (absent(error)) return ''
    throw new ConfigError(`${file}: cannot read the configuration (${(error as NodeJS.ErrnoException).code})`)
  })
}

/** Reports in advance whatever would prevent {@link writeStoreKey}. @throws ConfigError */
export async function checkStoreKeyWritable(file: string, key: StoreKey, value: string): Promise<void> {
  withStoreKey(await readText(file), key, value, file)
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
 * Writes a key of `[store]` into a configuration file, atomically and durably; the file keeps its mode, and a link to it is
 * kept.
 */
export async function writeStoreKey(file: string, key: StoreKey, value: string): Promise<void> {
  const text = withStoreKey(await readText(file), key, value, file)
  const real = await realpath(file).catch(() => file)
  await makeFolders(dirname(real), 0o700)
  const mode = await stat(real).then(
    (found) => found.mode & 0o777,
    () => undefined
  )
  await replaceFile(nodeFilePort, real, Buffer.from(text))
  if (mode !== undefined) await chmod(real, mode)
}
