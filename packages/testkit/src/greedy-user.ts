import { spawn } from 'node:child_process'
import { once } from 'node:events'

export interface Door {
  readonly host: string
  readonly port: number
}

export interface GreedyOptions {
  /** Connections to each door. */
  readonly connections: number
  /** From how many addresses of this machine. */
  readonly addresses: number
  /** Until a connection that was closed is opened again. */
  readonly pauseMs: number
  /** What each sends, and nothing more. `HOST` stands for the door. */
  readonly says?: string
}

/** Only root can act as somebody else. */
export const canBeAnotherUser = process.platform === 'linux' && process.getuid?.() === 0

const NOBODY = 65_534
const PROGRAM = `
const { connect } = require('node:net')
const { doors, connections, addresses, pauseMs, says = '' } = JSON.parse(process.argv[1])
let opened = 0
function take({ host, port }, i) {
  const socket = connect({ host, port, localAddress: '127.1.' + (i >> 8) + '.' + (i & 255) }).resume()
  socket.on('connect', () => {
    socket.write(says.replace('HOST', host + ':' + port))
    if (++opened === doors.length * connections) process.stdout.write('taken')
  })
  socket.on('error', () => undefined).on('close', () => setTimeout(take, pauseMs, { host, port }, i))
}
for (const door of doors) for (let i = 0; i < connections; i++) take(door, i % addresses)
`

/** Another user of this machine, who opens connections, and again when they are closed. @returns ends that, once all were opened */
export async function startGreedyUser(doors: readonly Door[], options: GreedyOptions): Promise<() => void> {
  const user = spawn(process.execPath, ['-e', PROGRAM, JSON.stringify({ doors, ...options })], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: '/',
    uid: NOBODY,
    gid: NOBODY
  })
  await once(user.stdout!, 'data')
  return () => void user.kill('SIGKILL')
}
