import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const SECRET_BYTES = 32
/** Browsers that hold a session; another one ends the oldest session. */
const MAX_SESSIONS = 8
const COOKIE = 'svc_ui'
/** How long a browser keeps the session of an address that stays. */
const SESSION_SECONDS = 180 * 86_400

/** A token or session that nobody can guess. */
export const secret = (): string => randomBytes(SECRET_BYTES).toString('base64url')
export const hashed = (text: string): Buffer => createHash('sha256').update(text).digest()

/** What a bridge keeps for its next run, so that browsers that were let in stay in. */
export interface KeptAccess {
  /** The host of its address. */
  readonly name: string
  readonly port: number
  readonly path: string
  /** SHA-256 of each session, in hex. */
  readonly sessions: readonly string[]
}

/** Where a bridge keeps that. */
export interface AccessKeeper {
  readonly kept: KeptAccess | undefined
  keep(access: KeptAccess): void
  /** Whether another program of the same user made this token; once. `hash` is its SHA-256 in hex. */
  redeem(hash: string): boolean
}

/** Who may use a bridge: whoever had its link first, from pages of the bridge itself. */
export class BridgeAccess {
  /**
   * The path of the page and of its cookie. Cookies ignore ports: browsers send them to any server on this address, that
   * of another user as well, but only below this path, which nobody can guess.
   */
  readonly path: string
  readonly #host: string
  readonly #keeper: AccessKeeper | undefined
  #link: Buffer | undefined
  #sessions: readonly Buffer[]

  /** `host` is the address and port that browsers must name. */
  constructor(host: string, keeper?: AccessKeeper) {
    this.#host = host
    this.#keeper = keeper
    this.path = keeper?.kept?.path ?? `/${randomBytes(16).toString('base64url')}/`
    this.#sessions = (keeper?.kept?.sessions ?? []).map((hex) => Buffer.from(hex, 'hex'))
    this.#keep()
  }

  /** A token that can be redeemed once. Earlier ones no longer can. */
  newToken(): string {
    const token = secret()
    this.#link = hashed(token)
    return token
  }

  /** The `Set-Cookie` of a new session; undefined unless the token is the last one, and unused. */
  redeem(token: string): string | undefined {
    const hash = hashed(token)
    if (this.#link !== undefined && timingSafeEqual(hash, this.#link)) this.#link = undefined
    else if (this.#keeper?.redeem(hash.toString('hex')) !== true) return undefined
    const session = secret()
    this.#sessions = [...this.#sessions, hashed(session)].slice(-MAX_SESSIONS)
    this.#keep()
    const lasts = this.#keeper === undefined ? '' : `; Max-Age=${SESSION_SECONDS}`
    return `${COOKIE}=${session}; Path=${this.path}; HttpOnly; SameSite=Strict${lasts}`
  }

  #keep(): void {
    if (this.#keeper === undefined) return
    const { hostname: name, port } = new URL(`http://${this.#host}`)
    this.#keeper.keep({
      name,
      port: Number(port || 80),
      path: this.path,
      sessions: this.#sessions.map((session) => session.toString('hex'))
    })
  }

  hasSession({ headers }: IncomingMessage): boolean {
    const given = (headers.cookie ?? '')
      .split('; ')
      .flatMap((pair) => (pair.startsWith(`${COOKIE}=`) ? [hashed(pair.slice(COOKIE.length + 1))] : []))
    return given.some((one) => this.#sessions.some((session) => timingSafeEqual(one, session)))
  }

  /**
   * Whether anything but a page of this bridge caused the request: another host name may point to this address (DNS
   * rebinding), another page may send requests here. Any page may open the entry.
   */
  isForeign({ headers, headersDistinct, method }: IncomingMessage, isEntry: boolean): boolean {
    const { host, origin, 'sec-fetch-site': site } = headers
    if (host !== this.#host || headersDistinct.host?.length !== 1) return true
    if (origin === undefined ? method !== 'GET' : origin !== `http://${this.#host}`) return true
    if (site === undefined || site === 'same-origin') return false
    const isOpened = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
    return !(method === 'GET' && isOpened && (isEntry || site === 'none'))
  }
}
