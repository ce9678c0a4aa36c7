import { access, constants, readlink, realpath, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { KeyedLock } from '@svc/internal-concurrency'
import { errnoOf, ifAbsent } from '@svc/internal-errors'
import { nodeFilePort } from './file-port.ts'
import { makeFolders } from './folder.ts'
import { replaceFile } from './replace-file.ts'

/** The file behind all links, whether or not it exists yet. */
async function behindLinks(file: string): Promise<string> {
  for (let [at, links] = [file, 0]; ; links++) {
    try {
      return await realpath(at)
    } catch (error) {
      const target = errnoOf(error) === 'ENOENT' && links < 40 ? await readlink(at).catch(() => undefined) : undefined
      if (target === undefined) return at
      at = resolve(dirname(at), target)
    }
  }
}

/** Whether the nearest folder of a file, or of what it links to, may be written. @throws the system's error if not */
export async function requireWritable(file: string): Promise<void> {
  for (let folder = dirname(await behindLinks(file)); ; folder = dirname(folder)) {
    try {
      return await access(folder, constants.W_OK)
    } catch (error) {
      if (folder === dirname(folder)) throw error
      ifAbsent(error)
    }
  }
}

/** One change at a time, so that concurrent changes do not overwrite each other. */
const turns = new KeyedLock()

/**
 * Replaces the text of a file atomically and durably, by what `edit` makes of it, unless that is undefined. The file keeps
 * its mode, its owner and the link to it; folders are made with mode 0700. @throws the errors of `edit`, and `refusal` of the
 * system's
 */
export async function rewriteFile(
  file: string,
  edit: () => Promise<string | undefined>,
  refusal: (cause: unknown) => Error
): Promise<void> {
  const real = await behindLinks(file)
  await turns.run(real, undefined, async () => {
    const text = await edit()
    if (text === undefined) return
    try {
      await makeFolders(dirname(real), 0o700)
      const like = await stat(real).catch(() => undefined)
      await replaceFile(nodeFilePort, real, Buffer.from(text), { like })
    } catch (cause) {
      throw refusal(cause)
    }
  })
}
