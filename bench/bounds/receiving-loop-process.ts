// `receiving-loop-process.ts FOLDER MIB YIELDING`: the bound of the event loop's delay while it receives. A child process sends MIB of bytes over TCP as fast as they
// are taken; the event loop copies them into pieces in shared memory, which two threads hash by blocks and write to a file in FOLDER, and a third hashes
// whole, at nice 8 and 5, as in a fill; YIELDING more threads hash at nice 10, as the store's do. Each turn takes little: after 1 MiB others come
// first. Nothing is checked, chosen, counted or told; what is measured is how late the event loop is when nothing but bytes and finished pieces wake it.
import { spawn } from 'node:child_process'
import { createHash, hash } from 'node:crypto'
import { once } from 'node:events'
import { openSync, writeSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { beginLoopBound } from './measured.ts'

// The heap of the daemon
setFlagsFromString('--max-semi-space-size=1')
setFlagsFromString('--semi-space-growth-factor=1')

const PIECE_BYTES = 1 << 20
const BLOCK_BYTES = 16 << 10
const READ_BYTES = 256 << 10
/** As the daemon's. */
const NICE = { yielding: 10, piece: 8, flat: 5 } as const
const TURN_BYTES = 1 << 20
/** Pieces that are being received, hashed or written. */
const SLOTS = 16

type Role = 'yielding' | 'piece' | 'flat'
interface Piece {
  readonly buffer: SharedArrayBuffer
  readonly position: number
}

async function main(folder: string, mib: number, yielding: number): Promise<void> {
  const start = (role: Role): Worker => new Worker(new URL(import.meta.url), { workerData: { role, folder } })
  const background = Array.from({ length: yielding }, () => start('yielding'))
  const hashers = [start('piece'), start('piece')]
  const flat = start('flat')
  const workers = [...background, ...hashers, flat]
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const sender = spawn(process.execPath, [new URL(import.meta.url).pathname, 'send', String(mib)], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  const [port] = (await once(sender.stdout.setEncoding('utf8'), 'data')) as [string]
  const end = beginLoopBound()
  await receive(Number(port), mib, hashers, flat)
  end()
  await Promise.all(workers.map((worker) => worker.terminate()))
}

function receive(port: number, mib: number, hashers: readonly Worker[], flat: Worker): Promise<void> {
  const free: Buffer[] = Array.from({ length: SLOTS }, () => Buffer.from(new SharedArrayBuffer(PIECE_BYTES)))
  /** How many threads have a piece still. */
  const users = new Map<number, { readonly slot: Buffer; count: number }>()
  let slot = free.pop()
  let [filled, at, done, turnBytes] = [0, 0, 0, 0]
  let isPaused = false
  return new Promise((resolve, reject) => {
    // a read may fill one piece and begin the next
    const hasRoom = (): boolean => slot !== undefined && free.length > 0
    const goOn = (): void => {
      if (!isPaused || !hasRoom()) return
      isPaused = false
      socket.resume()
    }
    const release = (position: number): void => {
      const piece = users.get(position)!
      if (--piece.count > 0) return
      users.delete(position)
      free.push(piece.slot)
      if (++done === mib) return resolve()
      slot ??= free.pop()
      goOn()
    }
    for (const thread of [...hashers, flat]) thread.on('message', release)
    const take = (count: number, bytes: Uint8Array): boolean => {
      for (let from = 0; from < count; ) {
        const length = Math.min(count - from, PIECE_BYTES - filled)
        ;(bytes as Buffer).copy(slot!, filled, from, from + length)
        from += length
        filled += length
        if (filled < PIECE_BYTES) continue
        const piece: Piece = { buffer: slot!.buffer as SharedArrayBuffer, position: at }
        users.set(at, { slot: slot!, count: 2 })
        hashers[(at / PIECE_BYTES) % hashers.length]!.postMessage(piece)
        flat.postMessage(piece)
        at += PIECE_BYTES
        filled = 0
        slot = free.pop()
      }
      turnBytes += count
      if (turnBytes < TURN_BYTES && hasRoom()) return true
      isPaused = true
      setImmediate(() => {
        turnBytes = 0
        goOn()
      })
      return false
    }
    const socket = connect({ port, host: '127.0.0.1', onread: { buffer: Buffer.alloc(READ_BYTES), callback: take } })
    socket.on('error', reject)
  })
}

function send(mib: number): void {
  const block = Buffer.alloc(READ_BYTES, 7)
  const server = createServer((socket: Socket) => {
    let left = (mib << 20) / READ_BYTES
    const next = (): void => void (left-- > 0 ? socket.write(block, next) : socket.end())
    socket.on('error', () => undefined)
    socket.on('close', () => server.close())
    next()
  })
  server.listen(0, '127.0.0.1', () => process.stdout.write(String((server.address() as AddressInfo).port)))
}

function work({ role, folder }: { readonly role: Role; readonly folder: string }): void {
  const port = parentPort!
  // 0 is this thread on Linux
  if (process.platform === 'linux') setPriority(0, NICE[role])
  if (role === 'yielding') {
    const block = new Uint8Array(PIECE_BYTES)
    port.postMessage('ready')
    for (;;) hash('sha256', block, 'buffer')
  }
  const whole = createHash('sha256')
  const fd = role === 'piece' ? openSync(join(folder, 'received'), 'a+') : -1
  port.on('message', ({ buffer, position }: Piece) => {
    const bytes = new Uint8Array(buffer)
    if (role === 'flat') whole.update(bytes)
    else {
      for (let at = 0; at < bytes.length; at += BLOCK_BYTES)
        hash('sha256', bytes.subarray(at, at + BLOCK_BYTES), 'buffer')
      writeSync(fd, bytes)
    }
    port.postMessage(position)
  })
  port.postMessage('ready')
}

if (!isMainThread) work(workerData as { role: Role; folder: string })
else if (process.argv[2] === 'send') send(Number(process.argv[3]))
else await main(process.argv[2]!, Number(process.argv[3]), Number(process.argv[4] ?? 2))
