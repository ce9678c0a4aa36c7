import { createHash, createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { chunksOf, type Packing, packChunk } from './xet-chunks.ts'

interface Span {
  readonly start: number
  readonly end: number
}

/** Chunks of a xorb that stand in a file one after the other. */
export interface FakeTerm {
  readonly hash: string
  readonly unpacked_length: number
  readonly range: Span
  /** Where it is asked for. */
  readonly chunk_byte_sizes?: readonly number[]
}

/** What a reconstruction answers; tests change it to make hostile ones. */
export interface FakeReconstruction {
  offset_into_first_range: unknown
  terms: unknown
  fetch_info?: unknown
  xorbs?: unknown
}

export interface FakeXetRequest {
  readonly stage: 'reconstruction' | 'xorb' | 'other'
  readonly url: string
  readonly headers: IncomingMessage['headers']
  /** Of a reconstruction: the file's hash. */
  readonly file?: string
}

export type FakeXetFault =
  | { readonly kind: 'status'; readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  /** The body of an answer in JSON. */
  | { readonly kind: 'edit'; readonly edit: (answer: FakeReconstruction) => unknown }
  /** The body of a xorb's range, or of several with their heads. */
  | { readonly kind: 'bytes'; readonly edit: (bytes: Buffer) => Buffer }
  /** Nothing is answered until the client goes away. */
  | { readonly kind: 'stall' }

export interface FakeXetOptions {
  /** The latest version that it knows. Default 2. */
  readonly version?: 1 | 2
  /** Says the length of each chunk to those who ask for it. Default true. */
  readonly isSized?: boolean
  /** All ranges of a xorb have one address, and come as parts of one body. Default false. */
  readonly isJoint?: boolean
  readonly packing?: (raw: Uint8Array, index: number) => Packing
  readonly faults?: (request: FakeXetRequest) => FakeXetFault | undefined
}

/** A service of chunks on two origins of its own: reconstructions, and signed addresses of xorbs. */
export interface FakeXet {
  readonly casUrl: string
  /** What it accepts; the hub's read-token route gives it. */
  readonly token: string
  readonly requests: readonly FakeXetRequest[]
  /** Stores a file, of which it has some chunks perhaps; returns its hash. */
  put(bytes: Uint8Array): string
  setFaults(faults: FakeXetOptions['faults']): void
  /** All that was written to sockets. */
  socketBytes(): number
  close(): Promise<void>
}

interface Xorb {
  readonly hash: string
  readonly bytes: Buffer
  /** Where each chunk begins, and where the last one ends: packed, and unpacked. */
  readonly packedAt: readonly number[]
  readonly rawAt: readonly number[]
}

const MAX_XORB_BYTES = 64 << 20
const MAX_CHUNKS = 8_192
function sha256(...parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest('hex')
}

/** What is stored: xorbs, and of each file its terms. Hashes are SHA-256: clients only compare them. */
class XetStore {
  readonly xorbs = new Map<string, Xorb>()
  readonly files = new Map<string, readonly FakeTerm[]>()
  readonly #chunks = new Map<string, { readonly xorb: string; readonly index: number }>()
  readonly #packing: NonNullable<FakeXetOptions['packing']>

  constructor(packing: NonNullable<FakeXetOptions['packing']>) {
    this.#packing = packing
  }

  put(bytes: Uint8Array): string {
    const chunks = [...chunksOf(bytes)].map((raw) => ({ raw, hash: sha256(raw) }))
    const file = sha256('file', ...chunks.map(({ hash }) => hash))
    const fresh = new Map<string, Uint8Array>()
    for (const { raw, hash } of chunks) if (!this.#chunks.has(hash)) fresh.set(hash, raw)
    let [held, size]: [[string, Buffer, number][], number] = [[], 0]
    const seal = (): void => {
      if (held.length > 0) this.#seal(held)
      held = []
      size = 0
    }
    for (const [hash, raw] of fresh) {
      const packed = packChunk(raw, this.#packing(raw, held.length))
      if (size + packed.length > MAX_XORB_BYTES || held.length === MAX_CHUNKS) seal()
      held.push([hash, packed, raw.length])
      size += packed.length
    }
    seal()
    const terms: FakeTerm[] = []
    for (const { raw, hash } of chunks) {
      const { xorb, index } = this.#chunks.get(hash)!
      const last = terms.at(-1)
      const goesOn = last?.hash === xorb && last.range.end === index
      if (goesOn) terms.pop()
      terms.push({
        hash: xorb,
        unpacked_length: (goesOn ? last.unpacked_length : 0) + raw.length,
        range: { start: goesOn ? last.range.start : index, end: index + 1 }
      })
    }
    this.files.set(file, terms)
    return file
  }

  #seal(chunks: readonly [hash: string, packed: Buffer, rawBytes: number][]): void {
    const hash = sha256('xorb', ...chunks.map(([each]) => each))
    const [packedAt, rawAt] = [[0], [0]]
    for (const [index, [chunk, packed, rawBytes]] of chunks.entries()) {
      this.#chunks.set(chunk, { xorb: hash, index })
      packedAt.push(packedAt.at(-1)! + packed.length)
      rawAt.push(rawAt.at(-1)! + rawBytes)
    }
    this.xorbs.set(hash, { hash, bytes: Buffer.concat(chunks.map(([, packed]) => packed)), packedAt, rawAt })
  }

  /** The terms of bytes `[start, end)` of a file, cut at chunks, and how far into the first one they begin. */
  within(
    terms: readonly FakeTerm[],
    start: number,
    end: number
  ): { readonly terms: FakeTerm[]; readonly skip: number } {
    const cut: FakeTerm[] = []
    let [at, skip] = [0, 0]
    for (const { hash, unpacked_length, range } of terms) {
      const { rawAt } = this.xorbs.get(hash)!
      const place = (chunk: number): number => at + rawAt[chunk]! - rawAt[range.start]!
      let [first, last] = [range.start, range.end]
      while (first < last && place(first + 1) <= start) first++
      while (last > first && place(last - 1) >= end) last--
      if (first < last) {
        if (cut.length === 0) skip = start - place(first)
        cut.push({ hash, unpacked_length: rawAt[last]! - rawAt[first]!, range: { start: first, end: last } })
      }
      at += unpacked_length
    }
    return { terms: cut, skip }
  }
}

export async function startFakeXet(options: FakeXetOptions = {}): Promise<FakeXet> {
  const { version: latest = 2, isJoint = false, isSized = true } = options
  const store = new XetStore(options.packing ?? (() => 'lz4'))
  const requests: FakeXetRequest[] = []
  const secret = 'not a secret'
  const token = 'xet-token'
  let faults = options.faults
  let transferOrigin = ''
  const sign = (hash: string, range: string): string =>
    createHmac('sha256', secret).update(`${hash} ${range}`).digest('hex')

  const sizedTerm = (term: FakeTerm): FakeTerm => {
    const { rawAt } = store.xorbs.get(term.hash)!
    const { start, end } = term.range
    return { ...term, chunk_byte_sizes: rawAt.slice(start, end).map((at, i) => rawAt[start + i + 1]! - at) }
  }

  const addressOf = (hash: string, ranges: readonly { readonly bytes: Span }[]): string => {
    const range = `bytes=${ranges.map(({ bytes }) => `${bytes.start}-${bytes.end}`).join(',')}`
    return `${transferOrigin}/xorbs/default/${hash}?X-Xet-Signed-Range=${encodeURIComponent(range)}&Signature=${sign(hash, range)}`
  }

  /** For each xorb the ranges that terms need, those that touch joined. */
  const rangesOf = (terms: readonly FakeTerm[]): [string, { chunks: Span; bytes: Span }[]][] =>
    [...Map.groupBy(terms, ({ hash }) => hash)].map(([hash, group]) => {
      const { packedAt } = store.xorbs.get(hash)!
      const joined: { start: number; end: number }[] = []
      for (const { start, end } of group.map(({ range }) => range).sort((a, b) => a.start - b.start)) {
        const last = joined.at(-1)
        if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end)
        else joined.push({ start, end })
      }
      const ranges = joined.map((chunks) => ({
        chunks,
        bytes: { start: packedAt[chunks.start]!, end: packedAt[chunks.end]! - 1 }
      }))
      return [hash, ranges]
    })

  const answerOf = (terms: readonly FakeTerm[], skip: number, version: number): FakeReconstruction => {
    const base = { offset_into_first_range: skip, terms }
    const ranges = rangesOf(terms)
    if (version === 1) {
      const infos = (hash: string, each: { chunks: Span; bytes: Span }) => ({
        range: each.chunks,
        url: addressOf(hash, [each]),
        url_range: each.bytes
      })
      return {
        ...base,
        fetch_info: Object.fromEntries(ranges.map(([hash, of]) => [hash, of.map((one) => infos(hash, one))]))
      }
    }
    const groups = (of: { chunks: Span; bytes: Span }[]) => (isJoint ? [of] : of.map((one) => [one]))
    const fetches = (hash: string, of: { chunks: Span; bytes: Span }[]) =>
      groups(of).map((each) => ({ url: addressOf(hash, each), ranges: each }))
    return { ...base, xorbs: Object.fromEntries(ranges.map(([hash, of]) => [hash, fetches(hash, of)])) }
  }

  const end = (
    response: ServerResponse,
    status: number,
    headers: Record<string, string> = {},
    body: string | Buffer = ''
  ): void => {
    response.writeHead(status, { 'content-length': String(Buffer.byteLength(body)), ...headers })
    response.end(body)
  }

  /** Undefined if the fault was the whole answer. */
  function note(
    seen: FakeXetRequest,
    response: ServerResponse
  ): { readonly fault: FakeXetFault | undefined } | undefined {
    requests.push(seen)
    const fault = faults?.(seen)
    if (fault?.kind === 'stall') return undefined
    if (fault?.kind !== 'status') return { fault }
    return void end(response, fault.status, fault.headers)
  }

  function cas(request: IncomingMessage, response: ServerResponse): void {
    const { url = '/', headers } = request
    const [, version, file] = /^\/v([12])\/reconstructions\/([0-9a-f]{64})(?:$|\?)/.exec(url) ?? []
    const noted = note(
      { stage: file === undefined ? 'other' : 'reconstruction', url, headers, ...(file && { file }) },
      response
    )
    if (noted === undefined) return
    const terms = file === undefined ? undefined : store.files.get(file)
    if (headers.authorization !== `Bearer ${token}`) return end(response, 401)
    if (terms === undefined || Number(version) > latest) return end(response, 404)
    const size = terms.reduce((sum, { unpacked_length }) => sum + unpacked_length, 0)
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? []
    if (Number(first ?? 0) >= size) return end(response, 416)
    const part = store.within(terms, Number(first ?? 0), Math.min(size, Number(last ?? size) + 1))
    const asksSizes = isSized && url.endsWith('?chunk_byte_sizes=true')
    const answer = answerOf(asksSizes ? part.terms.map(sizedTerm) : part.terms, part.skip, Number(version))
    const edited = noted.fault?.kind === 'edit' ? noted.fault.edit(answer) : answer
    const body = typeof edited === 'string' ? edited : JSON.stringify(edited)
    end(response, 200, { 'content-type': 'application/json' }, body)
  }

  function transfer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', transferOrigin)
    const noted = note({ stage: 'xorb', url: url.href, headers: request.headers }, response)
    if (noted === undefined) return
    if (request.headers.authorization !== undefined) return end(response, 400)
    const xorb = store.xorbs.get(url.pathname.split('/').at(-1) ?? '')
    const range = url.searchParams.get('X-Xet-Signed-Range') ?? ''
    if (xorb === undefined || url.searchParams.get('Signature') !== sign(xorb.hash, range)) return end(response, 403)
    // what was signed, and nothing else
    if (request.headers.range !== range) return end(response, 403)
    const edit = noted.fault?.kind === 'bytes' ? noted.fault.edit : (bytes: Buffer): Buffer => bytes
    const parts = range
      .slice('bytes='.length)
      .split(',')
      .map((text) => {
        const [start, last] = text.split('-').map(Number) as [number, number]
        return { said: `bytes ${start}-${last}/${xorb.bytes.length}`, bytes: xorb.bytes.subarray(start, last + 1) }
      })
    if (parts.length === 1) return end(response, 206, { 'content-range': parts[0]!.said }, edit(parts[0]!.bytes))
    const heads = parts.flatMap(({ said, bytes }) => [
      Buffer.from(`\r\n--part\r\nContent-Range: ${said}\r\n\r\n`),
      bytes
    ])
    const body = edit(Buffer.concat([...heads, Buffer.from('\r\n--part--\r\n')]))
    end(response, 206, { 'content-type': 'multipart/byteranges; boundary=part' }, body)
  }

  const sockets = new Set<Socket>()
  let goneBytes = 0
  const listen = (server: Server, host: string) =>
    new Promise<string>((resolve, reject) => {
      server.on('connection', (socket) => {
        sockets.add(socket)
        socket.on('error', () => {})
        socket.on('close', () => {
          sockets.delete(socket)
          goneBytes += socket.bytesWritten
        })
      })
      server.once('error', reject)
      server.listen(0, host, () => resolve(`http://${host}:${(server.address() as AddressInfo).port}`))
    })
  const servers = [createServer(cas), createServer(transfer)] as const
  const casUrl = await listen(servers[0], '127.0.0.3')
  transferOrigin = await listen(servers[1], '127.0.0.4')

  return {
    casUrl,
    token,
    requests,
    put: (bytes) => store.put(bytes),
    setFaults: (plan) => {
      faults = plan
    },
    socketBytes: () => [...sockets].reduce((sum, { bytesWritten }) => sum + bytesWritten, goneBytes),
    close: async () => {
      const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)))
      for (const socket of sockets) socket.destroy()
      await Promise.all(closed)
    }
  }
}
