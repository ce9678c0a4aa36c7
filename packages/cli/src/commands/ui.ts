import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { errnoOf } from '@svc/internal-errors'
import { DIRECTORY, FILES } from '@svc/ui'
import { usage } from '../errors.ts'
import type { Session } from '../session.ts'
import { Bridge, type PageFile } from '../ui/bridge.ts'
import { isRemote, openInBrowser } from '../ui/desktop.ts'

export interface UiOptions {
  readonly open?: boolean
  readonly port?: string
}

/** `svc ui [--no-open] [--port N]`: a page in the browser, until Ctrl-C. */
export async function ui(session: Session, options: UiOptions): Promise<void> {
  const { terminal, signal } = session
  const port = portOf(options.port)
  const bridge = await startBridge(session, port)
  let forget = (): void => {}
  const open = (): void => {
    forget()
    const link = bridge.newLink()
    session.json ? session.document({ link }) : session.print(link)
    if (options.open !== false) forget = openInBrowser(terminal.env, link) ?? (() => {})
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
  }
}

async function startBridge(session: Session, port: number): Promise<Bridge> {
  try {
    return await Bridge.start(session, { files: await pageFiles(), port })
  } catch (error) {
    const code = errnoOf(error)
    if (code === 'EADDRINUSE') throw usage(`port ${port} is taken`, 'without --port any free one is used')
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
