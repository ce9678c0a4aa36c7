import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import type { HubConfig } from '../../config/config.ts'
import { DaemonError } from '../../errors.ts'

const MAX_TOKEN_BYTES = 4096
/** O_NONBLOCK: a FIFO of that name would block otherwise. */
const READ = constants.O_RDONLY | constants.O_NONBLOCK

/**
 * The owner's token: of the environment, else what the hub client's file holds now.
 * @throws DaemonError `E_SOURCE_FORBIDDEN` naming a file that cannot be read or holds no token
 */
export async function tokenNow({ token, tokenFile }: HubConfig): Promise<string | undefined> {
  if (token !== undefined || tokenFile === undefined) return token
  const text = await contentOf(tokenFile)
  if (text === undefined || text === '') return undefined
  if (/^[\x21-\x7e]+$/.test(text)) return text
  throw unusable(tokenFile, 'it contains no token')
}

async function contentOf(path: string): Promise<string | undefined> {
  try {
    await using file = await open(path, READ)
    if (!(await file.stat()).isFile()) throw unusable(path, 'it is not a file')
    const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_TOKEN_BYTES))
    return bytesRead < MAX_TOKEN_BYTES ? buffer.toString('latin1', 0, bytesRead).trim() : 'too long for a token'
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error instanceof DaemonError ? error : unusable(path, message)
  }
}

const unusable = (path: string, why: string): DaemonError =>
  new DaemonError(
    'E_SOURCE_FORBIDDEN',
    `the hub token in ${path} cannot be used: ${why}; svc login hf writes a new one`
  )
