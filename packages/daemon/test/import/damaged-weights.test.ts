// Tensors that do not lie in their file: a runtime would read beyond it, or other tensors.
import { join } from 'node:path'
import { makeGguf } from '@svc/testkit/models'
import { expect, test } from 'vitest'
import { testDaemon } from '../support/daemon.ts'
import { writeFiles } from '../support/models.ts'

const U64 = 2n ** 64n

/** A GGUF whose last tensor begins elsewhere. */
function gguf(offset: bigint): Buffer {
  const bytes = makeGguf({
    tensors: [
      { name: 'a.weight', shape: [8], type: 'F32' },
      { name: 'b.weight', shape: [8], type: 'F32' }
    ]
  })
  bytes.writeBigUInt64LE(offset, bytes.indexOf('b.weight') + 8 + 4 + 8 + 4)
  return bytes
}

/** A safetensors file of 64 bytes of data, with a header of any text. */
function safetensors(header: string): Buffer {
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(header.length))
  return Buffer.concat([length, Buffer.from(header), Buffer.alloc(64, 7)])
}
const tensor = (from: number | string, to: number | string, values = 16): string =>
  `{"dtype":"F32","shape":[${values}],"data_offsets":[${from},${to}]}`

const WHOLE = { 'whole-q8_0.gguf': gguf(32n), 'whole.safetensors': safetensors(`{"a":${tensor(0, 64)}}`) }
const DAMAGED = {
  'beyond-q8_0.gguf': gguf(2n ** 33n),
  'wraps-q8_0.gguf': gguf(U64 - 32n),
  'overlaps-q8_0.gguf': gguf(0n),
  'unaligned-q8_0.gguf': gguf(33n),
  'cut-q8_0.gguf': gguf(32n).subarray(0, -1),
  'beyond.safetensors': safetensors(`{"a":${tensor(0, 68, 17)}}`),
  'wraps.safetensors': safetensors(`{"a":${tensor((U64 - 64n).toString(), '18446744073709551616')}}`),
  'backwards.safetensors': safetensors(`{"a":${tensor(64, 0)}}`),
  'overlaps.safetensors': safetensors(`{"a":${tensor(0, 64)},"b":${tensor(0, 64)}}`),
  'cut.safetensors': safetensors(`{"a":${tensor(0, 64)}}`).subarray(0, -1),
  'long.safetensors': Buffer.concat([safetensors(`{"a":${tensor(0, 64)}}`), Buffer.alloc(1)])
}

test('an import names each file whose tensors do not lie in it, and keeps its bytes', async () => {
  const api = await testDaemon()
  const files = { ...WHOLE, ...DAMAGED }
  const job = await api.import([writeFiles(join(api.folder, 'in'), files)], 'me/broken')
  expect(job).toMatchObject({ state: 'done', result: { quants: ['f32', 'q8_0'] } })
  const told = job.result!.warnings!.filter((text) => /is damaged|cannot be read/.test(text))
  expect(told.map((text) => text.split(' ', 1)[0]).sort()).toEqual(Object.keys(DAMAGED).sort())
  for (const quant of ['f32', 'q8_0']) {
    const { body } = await api.open(`svc:///me/broken:${quant}`)
    expect(body).not.toHaveProperty('missing')
    for (const { name, size } of body.files)
      if (name in files) expect([name, size]).toEqual([name, files[name as keyof typeof files].length])
  }
})
