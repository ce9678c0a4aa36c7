/** Writes headers of POSIX tar (pax) without times and owners, and reads them within limits. */

import { MAX_USTAR_BYTES, TAR_BLOCK, tarPadding, ustarHeader } from '@svc/internal-tar'

/** Two zero blocks end a tar. */
export const TAR_END = new Uint8Array(2 * TAR_BLOCK)

const MAX_NAME_BYTES = 100

/**
 * The header of a plain file. Names over 100 bytes and sizes from 8 GiB on go into pax records, which every current
 * reader supports.
 */
export function tarHeader(name: string, sizeBytes: number): Uint8Array {
  const records: string[] = []
  const isLong = Buffer.byteLength(name) > MAX_NAME_BYTES || !/^[\x20-\x7e]*$/.test(name)
  if (isLong) records.push(paxRecord('path', name))
  if (sizeBytes > MAX_USTAR_BYTES) records.push(paxRecord('size', `${sizeBytes}`))
  // what readers without pax support see; the pax records override it
  const plain = header(isLong ? truncated(name) : name, sizeBytes > MAX_USTAR_BYTES ? 0 : sizeBytes, '0')
  if (records.length === 0) return plain
  const body = Buffer.from(records.join(''))
  return Buffer.concat([
    header(truncated(`PaxHeaders/${name}`), body.length, 'x'),
    body,
    Buffer.alloc(tarPadding(body.length)),
    plain
  ])
}

const truncated = (name: string): string => name.replaceAll(/[^\x20-\x7e]/g, '_').slice(0, MAX_NAME_BYTES)

const header = (name: string, sizeBytes: number, type: '0' | 'x'): Uint8Array =>
  ustarHeader({ name: Buffer.from(name, 'latin1'), sizeBytes, type })

/** `<length> key=value\n`, where the length includes its own digits. */
function paxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`)
  let length = rest + 1
  while (`${length}`.length + rest !== length) length = `${length}`.length + rest
  return `${length} ${key}=${value}\n`
}

export interface TarEntry {
  readonly name: string
  readonly sizeBytes: number
  readonly type: string
}

/** Parses a header block: undefined for a block of zeros, 'bad' for an invalid one. */
export function readTarHeader(block: Buffer): TarEntry | undefined | 'bad' {
  if (block.every((byte) => byte === 0)) return undefined
  const sum = /^ *([0-7]{1,7})[\0 ]/.exec(block.toString('latin1', 148, 156))?.[1]
  const counted = block.reduce((total, byte, i) => total + (i >= 148 && i < 156 ? 0x20 : byte), 0)
  if (sum === undefined || Number.parseInt(sum, 8) !== counted) return 'bad'
  const sizeBytes = sizeOf(block)
  if (sizeBytes === undefined) return 'bad'
  const prefix = block.toString('latin1', 257, 262) === 'ustar' && block[263] !== 0x20 ? text(block, 345, 500) : ''
  const name = text(block, 0, 100)
  return { name: prefix === '' ? name : `${prefix}/${name}`, sizeBytes, type: String.fromCharCode(block[156]!) }
}

function text(block: Buffer, from: number, to: number): string {
  const end = block.indexOf(0, from)
  return block.toString('utf8', from, end < 0 || end > to ? to : end)
}

/** Octal, or the base-256 form that GNU tar and Go write for large sizes. */
function sizeOf(block: Buffer): number | undefined {
  if (block[124] === 0x80) {
    const size = block.readBigUInt64BE(128)
    return size <= BigInt(Number.MAX_SAFE_INTEGER) && block.readUIntBE(125, 3) === 0 ? Number(size) : undefined
  }
  const octal = /^ *([0-7]{1,12})(?:[\0 ]|$)/.exec(block.toString('latin1', 124, 136))?.[1]
  return octal === undefined ? undefined : Number.parseInt(octal, 8)
}

/** The records `path` and `size` of a pax header; undefined for a malformed one. */
export function readPaxRecords(body: Buffer): { path?: string; size?: number } | undefined {
  const found: { path?: string; size?: number } = {}
  for (let at = 0; at < body.length; ) {
    const space = body.indexOf(0x20, at)
    const digits = space < 0 ? '' : body.toString('latin1', at, space)
    const length = /^[1-9]\d{0,8}$/.test(digits) ? Number(digits) : 0
    if (length < 5 || at + length > body.length || body[at + length - 1] !== 0x0a) return undefined
    const record = body.toString('utf8', space + 1, at + length - 1)
    at += length
    const equals = record.indexOf('=')
    const value = record.slice(equals + 1)
    if (record.startsWith('path=')) found.path = value
    if (record.startsWith('size=')) {
      if (!/^\d{1,16}$/.test(value) || !Number.isSafeInteger(Number(value))) return undefined
      found.size = Number(value)
    }
  }
  return found
}
