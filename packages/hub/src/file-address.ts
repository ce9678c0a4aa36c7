import { digestHex } from '@svc/ref'
import { resolveUrl } from './endpoint.ts'
import { HubError } from './errors.ts'
import type { BodyConsumer, Flow, ResponseHead } from './exchange.ts'
import { header } from './headers.ts'
import type { Net, WalkResult } from './net.ts'
import type { HubFile } from './tree.ts'
import { Trouble } from './trouble.ts'

export interface OpenRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** The caller requests the file's address itself if it is not at the hub: the result then has no head. */
  readonly stopElsewhere?: boolean
  readonly onAnswer: (head: ResponseHead, url: URL, flow: Flow) => BodyConsumer | undefined
}

/**
 * Finds the address of one file's bytes. The hub is asked once; the signed URL that it returns serves every range until
 * it expires. Invariant: at most one resolving request runs at a time, and the others wait for its result.
 */
export class FileAddress {
  readonly #net: Net
  readonly #file: HubFile
  #found: URL | undefined
  #etag: string | undefined
  #resolving: Promise<void> | undefined
  #tellReady: () => void = () => {}
  /** Resolves when the file was first found; until then one request at a time is enough. */
  readonly ready: Promise<void> = new Promise((resolve) => {
    this.#tellReady = resolve
  })

  constructor(net: Net, file: HubFile) {
    this.#net = net
    this.#file = file
  }

  async get(request: OpenRequest): Promise<WalkResult> {
    while (this.#found === undefined && this.#resolving) await this.#resolving
    request.signal.throwIfAborted()
    const known = this.#found
    if (known !== undefined) {
      if (request.stopElsewhere) return { url: known, head: undefined }
      return await this.#net.walk({
        ...request,
        url: known,
        onAnswer: (head, url, flow) => {
          if (head.status < 300) this.#tellReady()
          return request.onAnswer(head, url, flow)
        }
      })
    }
    let done: () => void = () => {}
    this.#resolving = new Promise((resolve) => {
      done = resolve
    })
    const finish = () => {
      this.#resolving = undefined
      done()
    }
    try {
      const { repoId, commit, path } = this.#file
      const result = await this.#net.walk({
        ...request,
        url: new URL(resolveUrl(this.#net.endpoint, repoId, commit, path)),
        onHop: (head, url) => this.#checkHop(head, url),
        onAnswer: (head, url, flow) => {
          // Release the others as soon as the address is known, without waiting for this body.
          if (head.status < 300 || (head.status >= 500 && url.origin !== this.#net.endpoint.origin)) {
            this.#found = url
            this.#etag = undefined
          }
          if (head.status < 300) this.#tellReady()
          finish()
          return request.onAnswer(head, url, flow)
        }
      })
      if (result.head === undefined) {
        this.#found = result.url
        this.#etag = undefined
      }
      return result
    } finally {
      finish()
    }
  }

  /** The address from {@link get} has delivered bytes: other ranges may use it, too. */
  answered(): void {
    this.#tellReady()
  }

  /**
   * Discards an address, so that the next range asks the hub for a new one. False if another range has already done so.
   */
  forget(url: URL): boolean {
    if (this.#found?.href !== url.href) return false
    this.#found = undefined
    return true
  }

  /** Requires the same ETag on all responses of an address: another one means that the bytes do not belong together. */
  checkEtag(head: ResponseHead): void {
    const etag = header(head.headers, 'etag')
    if (etag === undefined) return
    this.#etag ??= etag
    if (etag === this.#etag) return
    throw new Trouble(
      'changed',
      new HubError(
        'E_SOURCE_UNAVAILABLE',
        'bad-answer',
        `"${this.#file.path}" keeps changing at its source while it is fetched; try again later`,
        { path: this.#file.path }
      )
    )
  }

  /** The metadata on the hub's own redirect must match the listing before any byte is accepted. */
  #checkHop(head: ResponseHead, url: URL): void {
    if (url.origin !== this.#net.endpoint.origin || head.status >= 400) return
    const { commit, sha256, sizeBytes } = this.#file
    const says = (name: string, expected: string) => {
      const value = header(head.headers, name)?.replace(/^(?:W\/)?"(.*)"$/, '$1')
      return value !== undefined && value !== expected
    }
    const isSha256 = /^"?[0-9a-f]{64}"?$/.test(header(head.headers, 'x-linked-etag') ?? '')
    if (
      says('x-repo-commit', commit) ||
      says('x-linked-size', String(sizeBytes)) ||
      (sha256 !== undefined && isSha256 && says('x-linked-etag', digestHex(sha256)))
    ) {
      throw wrongBytes(this.#file, 'the hub now names other bytes than it listed')
    }
  }
}

export const wrongBytes = (file: HubFile, what: string): Trouble =>
  new Trouble(
    'wrong',
    new HubError(
      'E_NOT_IMPORTABLE',
      'wrong-bytes',
      `"${file.path}" of "${file.repoId}" is not what the hub lists (${what}); it was tried twice`,
      { path: file.path }
    )
  )
