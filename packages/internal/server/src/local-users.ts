import { close, open, read } from 'node:fs'
import { isIPv6, type Socket } from 'node:net'
import { endianness } from 'node:os'
import { promisify } from 'node:util'
import type { Clock } from '@svc/internal-clock'
import { processWide } from '@svc/internal-concurrency'
import { addressReach, parseIPv6, plainAddress } from '@svc/internal-net'

/** Linux lists all connections here, with their users, for everybody. */
const TABLES = ['/proc/net/tcp', '/proc/net/tcp6']
/** Limit of what is read of each: some 200,000 connections, and those of the last minute count. */
const MAX_TABLE_BYTES = 32 << 20
/** Established, or half closed. */
const STATES = ['01', '04', '05', '08']
const LINE_FEED = 0x0a
const CHUNK_BYTES = 32 << 10
const PAGE_BYTES = 4_096
/** Between two looks: this, or as long as it takes that looking takes a tenth of the time. */
const MIN_PAUSE_MS = 20
const PAUSE_FACTOR = 9
const IS_LITTLE_ENDIAN = endianness() === 'LE'
/** IPv4 in IPv6, as a table has it. */
const MAPPED = `0000000000000000${IS_LITTLE_ENDIAN ? 'FFFF0000' : '0000FFFF'}`

/** Whether the client is on this machine. */
export const isLocal = ({ remoteAddress = '', localAddress = '' }: Socket): boolean =>
  remoteAddress === localAddress || [remoteAddress, localAddress].some((each) => addressReach(each) === 'loopback')

const hexPort = (port: number): string => port.toString(16).padStart(4, '0').toUpperCase()

/** The client's address and port, and the server's port, as the tables write them. */
export function clientEnd({ remoteAddress = '', remotePort = 0, localPort = 0 }: Socket): string {
  const host = plainAddress(remoteAddress)
  const bytes = isIPv6(host) ? parseIPv6(host).toByteArray() : host.split('.').map(Number)
  const words = Buffer.from(bytes)
  if (IS_LITTLE_ENDIAN) words.swap32()
  return `${words.toString('hex').toUpperCase()}:${hexPort(remotePort)}:${hexPort(localPort)}`
}

/**
 * Soon finds the users of connections within this machine, by {@link clientEnd}. Those whose process has closed them are
 * absent; so are all where the system does not tell. All who ask share a look at the tables.
 */
export function usersOf(ends: readonly string[], clock: Clock): Promise<ReadonlyMap<string, string>> {
  for (const end of ends) looks.wanted.add(end)
  looks.next ??= look(clock)
  return looks.next
}

interface Looks {
  wanted: Set<string>
  /** The look that has not begun. */
  next?: Promise<ReadonlyMap<string, string>> | undefined
  pause?: Promise<void>
}

const looks = processWide('local-users', (): Looks => ({ wanted: new Set() }))

async function look(clock: Clock): Promise<ReadonlyMap<string, string>> {
  await looks.pause
  const ends = looks.wanted
  looks.next = undefined
  looks.wanted = new Set()
  const users = new Map<string, string>()
  const servers = new Set(Array.from(ends, (end) => end.slice(end.lastIndexOf(':'))))
  // what a client's line has: the server's port, then a state in which its process can still hold the connection
  const marks = Array.from(servers, (port) => STATES.map((state) => Buffer.from(`${port} ${state} `))).flat()
  const begunMs = clock.monotonic()
  for await (const lines of linesOf(TABLES))
    for (const mark of marks)
      for (let at = lines.indexOf(mark); at >= 0; at = lines.indexOf(mark, at + 1)) note(lines, at, ends, users)
  looks.pause = clock.sleep(Math.max(MIN_PAUSE_MS, PAUSE_FACTOR * (clock.monotonic() - begunMs)))
  return users
}

/** Notes the user of the line around `at`, if it is one of `ends`. */
function note(lines: Buffer, at: number, ends: ReadonlySet<string>, users: Map<string, string>): void {
  const line = lines.toString('latin1', lines.lastIndexOf(LINE_FEED, at) + 1, lines.indexOf(LINE_FEED, at))
  const [, client = '', server = '', , , , , user, , inode] = line.trim().split(/ +/)
  const end = `${client.replace(MAPPED, '')}${server.slice(server.lastIndexOf(':'))}`
  if (user !== undefined && inode !== '0' && ends.has(end)) users.set(end, user)
}

const [openFile, readFile, closeFile] = [promisify(open), promisify(read), promisify(close)]

/**
 * The whole lines at the beginning of each table, some at a time, valid until the next; as far as they can be read. The
 * kernel makes a page at each read, from all connections of the machine: the threads of the pool wait for it.
 */
async function* linesOf(tables: readonly string[]): AsyncGenerator<Buffer, void, undefined> {
  const bytes = Buffer.allocUnsafe(CHUNK_BYTES)
  for (const table of tables) {
    const file = await openFile(table, 'r').catch(() => undefined)
    if (file === undefined) continue
    try {
      let kept = 0
      for (let total = 0; total < MAX_TABLE_BYTES; ) {
        const { bytesRead } = await readFile(file, bytes, kept, bytes.length - kept, null)
        total += bytesRead
        kept += bytesRead
        if (bytesRead > 0 && kept + PAGE_BYTES <= CHUNK_BYTES) continue
        const end = bytes.subarray(0, kept).lastIndexOf(LINE_FEED) + 1
        yield bytes.subarray(0, end)
        if (bytesRead === 0) break
        bytes.copyWithin(0, end, kept)
        kept -= end
      }
    } catch {
      // what was read so far
    } finally {
      await closeFile(file)
    }
  }
}
