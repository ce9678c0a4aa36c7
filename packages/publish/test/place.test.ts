import { encodePath } from '@svc/internal-http'
import { describe, expect, test } from 'vitest'
import { PublishError, parsePlace } from '../src/index.ts'
import { partBytesFor, partsAtOnce } from '../src/s3/multipart.ts'

const MIB = 1 << 20

describe('a place', () => {
  test.each([
    ['s3://models', { kind: 's3', bucket: 'models', prefix: '' }],
    ['s3://models/', { kind: 's3', bucket: 'models', prefix: '' }],
    ['s3://my.models-1/a b/c+d//', { kind: 's3', bucket: 'my.models-1', prefix: 'a b/c+d/' }],
    ['S3://models/x', { kind: 's3', bucket: 'models', prefix: 'x/' }],
    ['out', { kind: 'folder', path: '/home/me/out' }],
    ['/srv/www', { kind: 'folder', path: '/srv/www' }],
    ['./s3', { kind: 'folder', path: '/home/me/s3' }]
  ])('%s', (text, place) => {
    expect(parsePlace(text, '/home/me')).toEqual(place)
  })

  test.each([
    's3:models',
    's3:/models',
    's3://',
    's3:///x',
    's3://Models/x',
    's3://a/x',
    's3://mo..dels/x',
    's3://models/../x',
    's3://models/a/./b',
    's3://models/a//b',
    's3://models/a\\b',
    's3://models/a\nb',
    's3://user:secret@models/x',
    `s3://models/${'x'.repeat(600)}`,
    'https://models.example/x',
    'gs://models/x',
    ''
  ])('%j is refused', (text) => {
    expect(() => parsePlace(text, '/')).toThrow(
      expect.objectContaining({ constructor: PublishError, code: 'E_BAD_TARGET' })
    )
  })
})

test('keys are encoded so that no server misreads a character', () => {
  expect(encodePath("a b+c/ü%20#?&=;'(1)*!~-._")).toBe('a%20b%2Bc/%C3%BC%2520%23%3F%26%3D%3B%27%281%29%2A%21~-._')
})

test.each([
  [1, 16 * MIB, 16 * MIB, 4],
  [100e9, 16 * MIB, 16 * MIB, 4],
  [16 * MIB * 10_000, 16 * MIB, 16 * MIB, 4],
  [16 * MIB * 10_000 + 1, 16 * MIB, 17 * MIB, 4],
  [5 * 2 ** 40, 16 * MIB, 525 * MIB, 1],
  [1e6, 65_536, 65_536, 4]
])('%d bytes in parts of %d: %d each, %d at once', (sizeBytes, preferred, partBytes, atOnce) => {
  expect(partBytesFor(sizeBytes, preferred)).toBe(partBytes)
  expect(partsAtOnce(partBytes)).toBe(atOnce)
  expect(Math.ceil(sizeBytes / partBytes)).toBeLessThanOrEqual(10_000)
})
