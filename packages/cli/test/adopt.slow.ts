import { basename, join } from 'node:path'
import { makeGguf } from '@svc/testkit/models'
import { expect, it } from 'vitest'
import { testDaemon } from './support.ts'
import { put } from './tool-caches.ts'

it('one request imports a model of thousands of files', async () => {
  const daemon = await testDaemon()
  const folder = join(daemon.folder, 'Many')
  put(join(folder, 'many-q8_0.gguf'), makeGguf({ seed: 17 }))
  put(join(folder, 'config.json'), '{"model_type":"llama"}\n')
  for (let i = 0; i < 4000; i++) put(join(folder, 'extra', `${'x'.repeat(150)}-${i}.txt`), '')
  const { code, stdout } = await daemon.svc('adopt', folder, '--json')
  expect({ code, ...JSON.parse(stdout) }).toMatchObject({
    code: 0,
    models: [{ files: 4002, refs: ['acme/many:q8_0'.replace('acme', basename(daemon.folder).toLowerCase())] }]
  })
})
