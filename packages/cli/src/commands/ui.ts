import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { type Bridge, isRemote, KeptAddress, openInBrowser, type PageFile } from '@svc/internal-bridge'
import { errnoOf } from '@svc/internal-errors'
import { DIRECTORY, FILES } from '@svc/ui'
import { usage } from '../errors.ts'
import type { Session } from '../session.ts'
import { startBridge } from '../ui/page-bridge.ts'
import { stateFolder } from '../user-state.ts'

export interface UiOptions {
  readonly open?: boolean
  readonly port?: string
  /** Keeps the address, and who was let in, for the next run. */
  readonly stay?: boolean
}

/**
 * `svc ui [--no-open] [--port N] [--stay]`: a page in the browser, until Ctrl-C. Where one stays open already, such as a
 * service's, only a link into that one.
 */
export async function ui(session: Session, options: UiOptions): Promise<void> {
  const { terminal, signal } = session
  const folder = stateFolder(terminal.env)
  const keeper = folder === undefined ? undefined : new KeptAddress(join(folder, 'ui'))
  if (options.stay !== true && options.port === undefined) {
    const link = await keeper?.linkInto()
    if (link !== undefined) return openLink(session, link, options)
  }
  if (options.stay === true && keeper === undefined) throw usage('the home folder is unknown', 'set HOME')
  const stays = options.stay === true ? keeper : undefined
  const port = options.port === undefined ? (stays?.kept?.port ?? 0) : portOf(options.port)
  stays?.dropLink()
  const bridge = await openedBridge(session, port, stays)
  let forget = (): void => {}
  const open = (): void => {
    forget()
    const link = bridge.newLink()
    forget = show(session, link, options)
  }
  try {
    open()
    if (isRemote(terminal.env)) session.note(`from where you sit, reach it with: ${forward(terminal.env, bridge.port)}`)
    if (bridge.isShared)
      session.note(
        'Other programs may have used this address before: on a machine with several users, open the link in a private window.'
      )
    const canType = terminal.stdin?.isTTY === true
    session.note(`Each link works once${canType ? '; Enter makes a new one' : ''}. Ctrl-C ends the page.`)
    if (canType) terminal.stdin.on('data', open)
    if (!signal.aborted) await once(signal, 'abort')
  } finally {
    terminal.stdin?.off('data', open).pause()
    forget()
    await bridge.close()
    stays?.end()
  }
}

/** Prints a link, and opens it. @returns how to forget it */
function show(session: Session, link: string, { open }: UiOptions): () => void {
  session.json ? session.document({ link }) : session.print(link)
  return (open === false ? undefined : openInBrowser(session.terminal.env, link)) ?? (() => {})
}

/** How long a browser has to read the file that leads it to a link. */
const OPENING_MS = 3_000

async function openLink(session: Session, link: string, options: UiOptions): Promise<void> {
  const forget = show(session, link, options)
  session.note('The link leads to the page that stays open here, and works once; svc ui --port N opens another page.')
  if (options.open !== false) await session.clock.sleep(OPENING_MS, session.signal).catch(() => undefined)
  forget()
}

async function openedBridge(session: Session, port: number, keeper: KeptAddress | undefined): Promise<Bridge> {
  try {
    return await startBridge(session, { files: await pageFiles(), port, keeper })
  } catch (error) {
    const code = errnoOf(error)
    if (code === 'EADDRINUSE')
      throw usage(
        `port ${port} is taken`,
        keeper === undefined ? 'without --port any free one is used' : 'by svc ui --stay? Else --port chooses another'
      )
    if (code === 'EACCES') throw usage(`port ${port} needs privileges`, 'without --port any free one is used')
    throw error
  }
}

async function pageFiles(): Promise<ReadonlyMap<string, PageFile>> {
  const files = Object.entries(FILES).map(
    async ([name, type]) => [name, { type, bytes: await readFile(new URL(name, DIRECTORY)) }] as const
  )
  return new Map(await Promise.all(files))
}

/** 0: any. @throws CliError */
function portOf(text = '0'): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw usage(`"${text}" is not a port`, '--port 1024 to 65535')
}

/** The same port there, since the page answers to its own address only. */
function forward({ SSH_CONNECTION = '' }: Session['terminal']['env'], port: number): string {
  const [, , host = ''] = SSH_CONNECTION.split(' ')
  return `ssh -L ${port}:127.0.0.1:${port} ${userInfo().username}@${/^[\w.:-]+$/.test(host) ? host : 'HOST'}`
}
