import { crc32 } from 'node:zlib'

/** The text of a record below `state/`, as docs/disk.md says, of any version. */
export function recordText(body: object, version: number, readers = version): string {
  const covered = `${JSON.stringify({ ...body, version, readers }, null, 2).slice(0, -2)},\n`
  return `${covered}  "checksum": "crc32:${crc32(covered).toString(16).padStart(8, '0')}"\n}\n`
}
