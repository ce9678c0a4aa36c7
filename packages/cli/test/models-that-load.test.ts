// The guide's table has the rows that models-that-load.slow.ts runs, and what it says does not load is refused.
import { startFakeHub } from '@svc/testkit/fake-hub'
import { expect, it } from 'vitest'
import { GUIDE, LOADER_ROWS, testedWith } from './loader-rows.ts'
import { testDaemon } from './support.ts'

const rows = [...GUIDE.matchAll(/^\| (.+?) \| (.+?) \|$/gm)]
  .map(([, kind, loaders]) => ({ kind: kind!.split(':')[0]!, loaders: loaders!.split(/[,;] /) }))
  .slice(2)

it('every row that claims to load is run with its loaders', () => {
  const loading = rows.filter(({ loaders }) => !loaders[0]!.startsWith('nothing'))
  expect(loading.map(({ kind }) => kind)).toEqual(LOADER_ROWS.map(({ kind }) => kind))
  for (const [i, { loaders }] of LOADER_ROWS.entries())
    expect(loading[i]!.loaders.slice(0, loaders.length)).toEqual(loaders)
  expect(Object.keys(testedWith()).sort()).toEqual([...new Set(LOADER_ROWS.flatMap(({ loaders }) => loaders))].sort())
})

it.each(['pytorch_model.bin', 'model.ckpt', 'onnx/model.onnx', 'tf_model.h5', 'flax_model.msgpack'])(
  'a repository with only %s is refused, and the file is named',
  async (path) => {
    expect(rows.find(({ loaders }) => loaders[0]!.startsWith('nothing'))?.kind).toContain(path.split('.').at(-1))
    const hub = await startFakeHub({ repos: [{ id: 'Acme/Other', files: [{ path, content: Buffer.alloc(20_000) }] }] })
    try {
      const daemon = await testDaemon({ fileConfig: { swarm: { enabled: false }, hub: { endpoint: hub.endpoint } } })
      const ran = await daemon.svc('import', 'hf', 'Acme/Other', '--json')
      expect(JSON.parse(ran.stderr).error).toMatchObject({
        code: 'E_NOT_IMPORTABLE',
        message: expect.stringContaining(path)
      })
    } finally {
      await hub.close()
    }
  }
)
