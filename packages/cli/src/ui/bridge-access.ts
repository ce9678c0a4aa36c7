import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const SECRET_BYTES = 32
/** Browsers that hold a session; another one ends the oldest session. */
const MAX_SESSIONS = 8
const COOKIE = 'svc_ui'

const secret = (): string => randomBytes(SECRET_BYTES).toString('base64url')
const hashed = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Who may use a bridge: whoever had its link first, from pages of the bridge itself. */
export class BridgeAccess {
  /**
   * The path of the page and of its cookie. Cookies ignore ports: browsers send them to any server on this address, that
   * of another user as well, but only below this path, which nobody can guess.
   */
  readonly path = `/${randomBytes(16).toString('base64url')}/`
  readonly #host: string
  #link: Buffer | undefined
  #sessions: readonly Buffer[] = []

  /** `host` is the address and port that browsers must name. */
  constructor(host: string) {
    this.#host = host
  }

  /** A token that can be redeemed once. Earlier ones no longer can. */
  newToken(): string {
    const token = secret()
    this.#link = hashed(token)
    return token
  }

  /** The `Set-Cookie` of a new session; undefined unless the token is the last one, and unused. */
  redeem(token: string): string | undefined {
    if (this.#link === undefined || !timingSafeEqual(hashed(token), this.#link)) return undefined
    this.#link = undefined
    const session = secret()
    this.#sessions = [...this.#sessions, hashed(session)].slice(-MAX_SESSIONS)
    return `${COOKIE}=${session}; Path=${this.path}; HttpOnly; SameSite=Strict`
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
