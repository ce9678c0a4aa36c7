import { randomBytes } from 'node:crypto'
import { readFile, realpath, rename, stat, unlink, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { makeFolders } from '@svc/internal-files'
import { ConfigError } from '../errors.ts'
import { parseConfigText } from './file.ts'

const SECTION = /^[ \t]*\[[ \t]*swarm[ \t]*\][ \t]*(?:#.*)?$/m
const KEY = /^[ \t]*seed_local[ \t]*=.*$/m

/**
 * `text` with `[swarm] seed_local` set to `value`; everything else, including comments, is unchanged.
 * @throws ConfigError when the text is written in a way that this cannot edit
 */
export function withSeedLocal(text: string, value: boolean, file: string): string {
  const line = `seed_local = ${value}`
  const known = parseConfigText(text, file).swarm?.seed_local
  let changed: string
  if (known !== undefined) changed = text.replace(KEY, line)
  else if (SECTION.test(text)) changed = text.replace(SECTION, (header) => `${header}\n${line}`)
  else changed = `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${text === '' ? '' : '\n'}[swarm]\n${line}\n`
  const by = new ConfigError(`${file}: cannot add to it; write ${line} into the section [swarm] yourself`)
  try {
    if (parseConfigText(changed, file).swarm?.seed_local === value) return changed
  } catch {
    throw by
  }
  throw by
}

/** Writes the owner's decision into the configuration file, which is created if absent. @throws ConfigError */
export async function rememberSeedLocal(named: string, value: boolean): Promise<void> {
  try {
    await makeFolders(dirname(named), 0o700)
    // if it is a link, replace its target and keep the link
    const file = await realpath(named).catch(() => named)
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return ''
      throw error
    })
    const changed = withSeedLocal(text, value, file)
    const mode = await stat(file).then(
      (facts) => facts.mode & 0o777,
      () => 0o600
    )
    const beside = `${file}.${randomBytes(6).toString('hex')}.tmp`
    try {
      await writeFile(beside, changed, { mode, flag: 'wx', flush: true })
      await rename(beside, file)
    } finally {
      await unlink(beside).catch(() => undefined)
    }
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new ConfigError(`${named}: cannot be written (${code}); write seed_local = ${value} below [swarm] yourself`, {
      cause
    })
  }
}
