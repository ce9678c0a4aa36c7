// Archives whose bytes depend on nothing but the files: sorted, of one moment, of nobody in particular.
import { gzipSync } from 'node:zlib'
import type { Entry, FileTree } from './tree.ts'

/** Seconds since 1970 that every file is said to be of: old enough for no clock to find it in the future. */
const MOMENT_SECONDS = 946_684_800

const BLOCK = 512

/** A POSIX ustar archive of the tree and its folders, each path behind `prefix`. @throws Error for a path that ustar cannot hold */
export function tar(tree: FileTree, prefix = ''): Buffer {
  const parts: Buffer[] = []
  const folders = new Set<string>()
  for (const entry of tree.entries()) {
    const path = prefix + entry.path
    for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) {
      const folder = path.slice(0, at + 1)
      if (folder === './' || folders.has(folder)) continue
      folders.add(folder)
      parts.push(header({ name: folder, mode: 0o755, size: 0, type: '5', link: '' }))
    }
    parts.push(...member(path, entry))
  }
  parts.push(Buffer.alloc(2 * BLOCK))
  return Buffer.concat(parts)
}

function member(name: string, entry: Entry): Buffer[] {
  if ('link' in entry) return [header({ name, mode: 0o777, size: 0, type: '2', link: entry.link })]
  const { content, executable } = entry
  const rest = (BLOCK - (content.length % BLOCK)) % BLOCK
  return [
    header({ name, mode: executable ? 0o755 : 0o644, size: content.length, type: '0', link: '' }),
    content,
    Buffer.alloc(rest)
  ]
}

interface Header {
  readonly name: string
  readonly mode: number
  readonly size: number
  readonly type: '0' | '2' | '5'
  readonly link: string
}

/** POSIX.1-1988 ustar, pax(1) "ustar Interchange Format". */
function header({ name, mode, size, type, link }: Header): Buffer {
  const block = Buffer.alloc(BLOCK)
  const put = (text: string, at: number, room: number): void => {
    if (Buffer.byteLength(text) > room) throw new Error(`${name} does not fit into a tar header`)
    block.write(text, at)
  }
  const octal = (value: number, at: number, room: number): void =>
    put(value.toString(8).padStart(room - 1, '0'), at, room - 1)
  const [before, behind] = split(name)
  put(behind, 0, 100)
  octal(mode, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(size, 124, 12)
  octal(MOMENT_SECONDS, 136, 12)
  put(' '.repeat(8), 148, 8)
  put(type, 156, 1)
  put(link, 157, 100)
  put('ustar\x0000', 257, 8)
  put('root', 265, 32)
  put('root', 297, 32)
  put(before, 345, 155)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return block
}

/** The two fields that a long path is kept in. */
function split(name: string): readonly [string, string] {
  if (Buffer.byteLength(name) <= 100) return ['', name]
  for (let at = name.indexOf('/'); at > 0 && at < name.length - 1; at = name.indexOf('/', at + 1)) {
    if (Buffer.byteLength(name.slice(at + 1)) <= 100) return [name.slice(0, at), name.slice(at + 1)]
  }
  return ['', name]
}

/** gzip without a name, a time, or the system that it was made on. */
export function gzip(bytes: Buffer): Buffer {
  const packed = gzipSync(bytes, { level: 6 })
  packed[9] = 255
  return packed
}

/** A Unix `ar` archive of files with short names, as deb(5) wants it. */
export function ar(files: readonly (readonly [string, Buffer])[]): Buffer {
  const parts: Buffer[] = [Buffer.from('!<arch>\n')]
  for (const [name, content] of files) {
    const fields = [
      [name, 16],
      [String(MOMENT_SECONDS), 12],
      ['0', 6],
      ['0', 6],
      ['100644', 8],
      [String(content.length), 10]
    ] as const
    const head = fields.map(([text, width]) => text.padEnd(width)).join('')
    if (head.length !== 58) throw new Error(`${name} does not fit into an ar header`)
    parts.push(Buffer.from(`${head}\x60\n`), content, Buffer.alloc(content.length % 2, '\n'))
  }
  return Buffer.concat(parts)
}
