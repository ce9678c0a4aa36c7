// Headers as GNU tar reads them, up to files beyond 8 GiB, and as others write them.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tarPadding } from '@svc/internal-tar'
import { afterAll, describe, expect, it } from 'vitest'
import { readTarHeader, tarHeader } from '../src/tar-header.ts'

const folder = mkdtempSync(join(tmpdir(), 'svc-oci-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('tarHeader', () => {
  it.each([
    ['an ordinary file', 'a.txt', 5],
    ['8 GiB less one byte', 'b', 8 ** 11 - 1],
    ['8 GiB', 'c', 8 ** 11],
    ['100 GiB below a long name', `models/${'x'.repeat(150)}.gguf`, 100 * 2 ** 30],
    ['a name beyond ASCII', 'models/größe-模型.gguf', 7]
  ])('GNU tar reads %s', (_, name, sizeBytes) => {
    const path = join(folder, 'one.tar')
    const head = tarHeader(name, sizeBytes)
    writeFileSync(path, head)
    // sparse: the bodies take no room
    truncateSync(path, head.length + sizeBytes + tarPadding(sizeBytes) + 1024)
    const { stdout, status } = spawnSync('tar', ['--quoting-style=literal', '-tvf', path], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C.UTF-8', TZ: 'UTC' }
    })
    expect(status).toBe(0)
    expect(stdout).toBe(`-rw-r--r-- 0/0 ${`${sizeBytes}`.padStart(15)} 1970-01-01 00:00 ${name}\n`)
  })
})

describe('readTarHeader', () => {
  const block = (edit: (block: Buffer) => void): Buffer => {
    const bytes = Buffer.from(tarHeader('a', 5))
    edit(bytes)
    const sum = bytes.reduce((total, byte, i) => total + (i >= 148 && i < 156 ? 0x20 : byte), 0)
    bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
    return bytes
  }

  it('reads sizes in base 256, as GNU tar and Go write large ones', () => {
    const large = block((bytes) => {
      bytes.fill(0, 124, 136)
      bytes[124] = 0x80
      bytes.writeBigUInt64BE(12n * 2n ** 30n, 128)
    })
    expect(readTarHeader(large)).toEqual({ name: 'a', sizeBytes: 12 * 2 ** 30, type: '0' })
  })

  it('refuses damaged headers and sizes that no file has', () => {
    const damaged = Buffer.from(tarHeader('a', 5))
    damaged[0]! ^= 1
    expect(readTarHeader(damaged)).toBe('bad')
    expect(readTarHeader(block((bytes) => bytes.write('99999999999', 124, 'latin1')))).toBe('bad')
    const huge = block((bytes) => {
      bytes.fill(0xff, 124, 136)
      bytes[124] = 0x80
    })
    expect(readTarHeader(huge)).toBe('bad')
    expect(readTarHeader(Buffer.alloc(512))).toBeUndefined()
  })
})
