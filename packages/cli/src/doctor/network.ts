import { spawnSync } from 'node:child_process'
import { createConnection, isIP } from 'node:net'
import { isLoopbackAddress, spokenAddress } from '../format.ts'
import { type Check, codeOf, type Found, say } from './finding.ts'

/** The proxies of this shell. A service has its own environment. */
export const proxies: Check = ({ env }) => {
  const found: Found[] = []
  for (const name of ['HTTPS_PROXY', 'HTTP_PROXY'] as const) {
    const value = env[name.toLowerCase()] || env[name]
    if (value === undefined || value === '') continue
    const url = URL.canParse(value) ? new URL(value) : undefined
    if (url === undefined || !/^https?:$/.test(url.protocol))
      found.push(say.bad(`${name} is not an http:// address`, `export ${name}=http://host:port, or unset it`))
    // printed without the password.
    else
      found.push(say.note(`${name} is ${url.protocol}//${url.host}`, 'a service does not see what your shell exports'))
  }
  return found.length > 0 ? found : [say.ok('none is set')]
}

const CONNECT_MS = 1500

/** The swarm's listeners: whether they accept connections, and from whom. */
export const listeners: Check = async ({ status }) => {
  if (status === undefined) return []
  const { swarm } = status
  if (!swarm.enabled)
    return [say.note('the swarm is off ([swarm] enabled = false): nothing is fetched from peers or shared')]
  const found: Found[] = []
  const probe = async (what: string, address: string): Promise<void> => {
    const failure = await connectionFailure(address)
    found.push(
      failure === undefined
        ? say.ok(`${what}: ${spokenAddress(address)}`)
        : say.warn(
            `${what} should be served at ${address}, but it does not answer (${failure})`,
            'restart the daemon; see its log'
          )
    )
  }
  const { peerAddress, webseedAddress } = swarm
  // one reachable listener suffices, and the one for peers is open by default
  if (peerAddress === undefined) found.push(say.note('peers cannot connect', 'set [swarm] peer_addr = "0.0.0.0:0"'))
  else await probe('peers', peerAddress)
  if (webseedAddress !== undefined) await probe('HTTP', webseedAddress)
  const reached = [peerAddress, webseedAddress].some((address) => address !== undefined && !isLoopbackAddress(address))
  if (swarm.seed && !reached)
    found.push(
      say.note('only this machine can fetch what is shared', 'to share with others: [swarm] peer_addr = "0.0.0.0:0"')
    )
  return found
}

/** What is given to others. */
export const sharing: Check = ({ status }) => {
  if (status === undefined || !status.swarm.enabled) return []
  if (!status.swarm.seed) return [say.ok('off: nothing is announced or shared; svc seed on turns sharing on')]
  return [say.note('public models are shared with others over BitTorrent', 'svc seed off turns sharing off')]
}

function hostAndPort(address: string): readonly [string, number] {
  const at = address.lastIndexOf(':')
  return [address.slice(0, at).replace(/^\[(.*)\]$/, '$1'), Number(address.slice(at + 1))]
}

/** Why a connection to a listener on this machine fails; a wildcard address is tried on loopback. */
function connectionFailure(address: string): Promise<string | undefined> {
  const [given, port] = hostAndPort(address)
  const host = given === '0.0.0.0' ? '127.0.0.1' : given === '::' ? '::1' : given
  if (isIP(host) === 0) return Promise.resolve('no address')
  return new Promise((settle) => {
    const connection = createConnection({ host, port, timeout: CONNECT_MS })
    const done = (failure: string | undefined): void => {
      connection.destroy()
      settle(failure)
    }
    connection.once('connect', () => done(undefined))
    connection.once('timeout', () => done('no answer'))
    connection.once('error', (error) => done(codeOf(error)))
  })
}

/** Whether peers can be found. */
export const dht: Check = ({ status }) => {
  if (status === undefined || !status.swarm.enabled) return []
  const { dhtPort, peers, torrents } = status.swarm
  if (dhtPort === undefined)
    return [say.note('off ([swarm] dht = false): peers come from trackers and from what was shared with you')]
  const text = `on, UDP port ${dhtPort}; ${peers} peers in ${torrents.length} torrents`
  return torrents.length > 0 && peers === 0
    ? [say.note(`${text}: no node answers, or a firewall blocks UDP`, `let UDP through to port ${dhtPort}`)]
    : [say.ok(text)]
}

/** A clock before this date is wrong, as this program is newer. */
const EARLIEST_MS = Date.parse('2025-01-01')

/** A wrong clock breaks the validation of the hub's certificate. */
export const clock: Check = ({ platform, status, clock: ours }) => {
  const synchronized = platform === 'linux' ? timedatectl() : undefined
  return judgeClock(ours.now(), status === undefined ? undefined : Date.parse(status.startedAt), synchronized)
}

export function judgeClock(nowMs: number, startedMs: number | undefined, synchronized: boolean | undefined): Found[] {
  const advice = 'set the clock (timedatectl set-ntp true), then restart the daemon'
  if (nowMs < EARLIEST_MS)
    return [say.bad(`it is ${new Date(nowMs).toISOString()} here: certificates of the hub will be refused`, advice)]
  if (startedMs !== undefined && startedMs > nowMs + 1000)
    return [say.warn('the start of the daemon is in the future: the clock was set back', advice)]
  if (synchronized === false) return [say.note(`${new Date(nowMs).toISOString()}, not synchronized`, advice)]
  return [say.ok(new Date(nowMs).toISOString())]
}

/** Undefined if systemd does not report it. */
function timedatectl(): boolean | undefined {
  const { stdout, status } = spawnSync('timedatectl', ['show', '--property=NTPSynchronized', '--value'], {
    encoding: 'utf8',
    timeout: 3000
  })
  const said = status === 0 ? stdout.trim() : ''
  return said === 'yes' ? true : said === 'no' ? false : undefined
}
