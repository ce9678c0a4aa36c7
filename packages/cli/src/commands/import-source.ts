import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { tryParseHubSource } from '../hub/hub-source.ts'
import type { Session } from '../session.ts'
import { type HfOptions, importByName, importLocal, neitherHereNorThere, refuseOllamaAddress } from './imports.ts'
import { importPublished, tryParseWebAddress } from './published.ts'

/** `svc import SOURCE`: the form says what it is; a path that exists is a path. */
export async function importSource(session: Session, text: string, options: HfOptions): Promise<void> {
  if (existsSync(resolve(session.terminal.cwd, text))) return importLocal(session, [text], options)
  refuseOllamaAddress(text)
  if (tryParseHubSource(text) !== undefined) return importByName(session, text, options)
  const address = tryParseWebAddress(text)
  if (address !== undefined) return importPublished(session, address, options)
  throw neitherHereNorThere(text)
}
