import { expect, it } from 'vitest'
import { svc, testDaemon } from './support.ts'

it('words of other tools work where they mean the same', async () => {
  const daemon = await testDaemon()
  for (const word of ['ls', 'list', 'images', 'models']) expect(await daemon.svc(word)).toMatchObject({ code: 0 })
  for (const word of ['rm', 'delete', 'remove', 'rmi', 'show', 'info', 'inspect'])
    expect(await daemon.svc(word, 'me/none:q8_0')).toMatchObject({ code: 3 })
  const { stdout } = await daemon.svc('--help')
  expect(stdout).not.toMatch(/^ +(?:delete|images|create)\b/m)
})

it('other words are answered with a command, without a daemon', async () => {
  const rows: readonly (readonly [line: string, type: string])[] = [
    ['create qwen -f Modelfile', 'svc import local FILE --as ns/name'],
    ['scan', 'svc adopt --dry-run'],
    ['prune --all', 'svc gc'],
    ['chat qwen', 'svc run REF'],
    ['auth login', 'svc login hf'],
    ['hf.co/acme/Model-GGUF:Q4_K_M', 'svc run hf.co/acme/Model-GGUF:Q4_K_M'],
    ['stop qwen3', 'svc ps']
  ]
  for (const [line, type] of rows) {
    const ran = await svc(line.split(' '), { socketPath: '/nonexistent/svc.sock' })
    expect([line, ran.code]).toEqual([line, 2])
    expect(ran.stderr).toContain(type)
  }
})

it("an address of Ollama's registry is answered with the ways to have the model", async () => {
  const daemon = await testDaemon()
  for (const command of ['pull', 'run', 'import']) {
    const ran = await daemon.svc(command, 'ollama.com/library/qwen3:4b')
    expect([command, ran.code]).toEqual([command, 2])
    expect(ran.stderr).toContain('svc search qwen3')
    expect(ran.stderr).toContain('ollama pull qwen3:4b, then svc adopt ollama')
  }
})
