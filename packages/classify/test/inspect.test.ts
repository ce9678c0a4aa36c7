// Each defect has a clean twin, of which nothing is said.

import { makeGguf } from '@svc/testkit/models'
import { describe, expect, it } from 'vitest'
import { inspectFiles, inspectText } from '../src/index.ts'

const utf8 = new TextEncoder()
const json = (value: unknown): Uint8Array => utf8.encode(JSON.stringify(value))

async function inspected(files: Readonly<Record<string, Uint8Array>>) {
  const listing = Object.entries(files).map(([name, { length }]) => ({ name, sizeBytes: length }))
  const { findings } = await inspectFiles(
    listing,
    (name) => async (offset, lengthBytes) => files[name]!.subarray(offset, offset + lengthBytes)
  )
  return findings.map(({ file, key = '', is, what }) => `${file} ${key} ${is} ${what}`)
}

/** A safetensors file with this text as its header. */
function withHeader(header: string, dataBytes = 0): Uint8Array {
  const text = utf8.encode(header)
  const file = new Uint8Array(8 + text.length + dataBytes)
  new DataView(file.buffer).setBigUint64(0, BigInt(text.length), true)
  file.set(text, 8)
  return file
}
const tensor = (start: number, end: number) => ({ dtype: 'U8', shape: [end - start], data_offsets: [start, end] })

const USUAL =
  "{%- if messages[0]['role'] == 'system' %}{{ bos_token + messages[0].content.strip() }}{% endif %}{% macro f(x) %}{{ x | tojson }}{% endmacro %}" +
  "{%- set ns = namespace(n=0) %}{% for m in messages %}{{ f(m) }}{{ raise_exception('it says }} (a) __class__') }}{% if loop.first and not (m.tool_calls) %}{{ m.content.split('x')[-1] | trim | replace('a', 'b') }}{% endif %}{% endfor %}{{ strftime_now('%d') }}{# __mro__ os.popen() #}"

describe('what would run code', () => {
  it.each([
    ['auto_map', 'config.json', { auto_map: { AutoModel: 'm.M' } }, { model_type: 'llama' }],
    ['model_file', 'config.json', { model_file: 'x.py' }, { model_files: 1 }],
    [
      '_attn_implementation_internal',
      'config.json',
      { _attn_implementation_internal: 'a/b' },
      { _attn_implementation: 'sdpa' }
    ],
    [
      'attn_implementation',
      'config.json',
      { attn_implementation: 'org/kernel' },
      { attn_implementation: 'flash_attention_2' }
    ],
    ['a.auto_map', 'sub/config.json', { a: { auto_map: {} } }, { a: { b: 'auto_map' } }],
    ['trust_remote_code', 'tokenizer_config.json', { trust_remote_code: true }, { trust_remote_code: false }],
    ['chat_template', 'tokenizer_config.json', { chat_template: '{{ x.__class__ }}' }, { chat_template: USUAL }],
    [
      'chat_template.template',
      'tokenizer_config.json',
      { chat_template: [{ name: 'a', template: "{{ cycler.__init__.__globals__.os.popen('id') }}" }] },
      { chat_template: [{ name: 'a', template: USUAL }] }
    ],
    ['type', 'modules.json', [{ type: 'other.Thing' }], [{ type: 'sentence_transformers.models.Pooling' }]]
  ])('%s in %s', async (key, file, bad, clean) => {
    const said = await inspected({ [file]: json(bad) })
    expect(said[0]).toMatch(new RegExp(`^${file} ${key.replace('.', '\\.')} runs-code `))
    expect(await inspected({ [file]: json(clean) })).toEqual([])
  })

  it.each([
    ["{{ x|attr('__class__') }}", 'attr'],
    ["{% include 'other' %}", 'include'],
    ["{{ lipsum.__globals__['os'].popen('id').read() }}", '__globals__'],
    ['{{ get_flashed_messages() }}', 'get_flashed_messages'],
    ["{{ a.system('x') }}", 'system'],
    ['{{ a._private }}', '_private'],
    ["{{ x['__class__']['__mro__'] }}", '__mro__'],
    ['{{ {1:{}}.__class__.__mro__ }}', '__mro__'],
    ['{% raw %}{#{% endraw %}{{ x.__class__ }}', '__class__'],
    ['{%- raw -%}{{ "{%- endraw -%}{{ x.__class__ }}', '__class__'],
    [
      `${Array.from({ length: 1_100 }, (_, i) => `{%macro a${i}()%}{%endmacro%}`).join('')}{{ x.__class__ }}`,
      'more than 1000 functions'
    ],
    ['{% macro popen(x) %}{% endmacro %}{{ a.popen(1) }}', 'popen']
  ])('a template with %s', async (template, what) => {
    expect((await inspected({ 'chat_template.jinja': utf8.encode(template) })).join()).toContain(what)
    expect(
      (await inspected({ 'm.gguf': makeGguf({ seed: 1, metadata: { 'tokenizer.chat_template': template } }) })).join()
    ).toContain(what)
  })

  it('usual templates say nothing', async () => {
    expect(await inspected({ 'chat_template.jinja': utf8.encode(USUAL) })).toEqual([])
    expect(
      await inspected({ 'm.gguf': makeGguf({ seed: 1, metadata: { 'tokenizer.chat_template': USUAL } }) })
    ).toEqual([])
  })

  it('pickles, by name and by bytes; Python; native code', async () => {
    const pickle = Uint8Array.of(0x80, 4, 0x95, 1)
    expect(await inspected({ 'a.pth': utf8.encode('x'), 'b.bin': pickle, 'c.bin': utf8.encode('lmgg....') })).toEqual([
      expect.stringContaining('a.pth  runs-code is a pickle'),
      expect.stringContaining('b.bin  runs-code is a pickle')
    ])
    expect(
      await inspected({ 'modeling_x.py': utf8.encode('1'), 'lib.so': utf8.encode('1'), 'README.md': utf8.encode('1') })
    ).toHaveLength(2)
  })
})

describe('what is malformed', () => {
  it.each([
    [
      'weight_map',
      'model.safetensors.index.json',
      { weight_map: { a: '../../x.safetensors' } },
      { weight_map: { a: 'x-1.safetensors' } }
    ],
    [
      'weight_map',
      'model.safetensors.index.json',
      { weight_map: { a: '/etc/passwd' } },
      { weight_map: { a: 'sub/x.safetensors' } }
    ],
    ['vocab_file', 'tokenizer_config.json', { vocab_file: 'C:\\x' }, { vocab_file: 'vocab.json' }],
    ['', 'config.json', { 'a\u0007b': 1 }, { 'a b': 1 }]
  ])('%s in %s', async (key, file, bad, clean) => {
    const said = await inspected({ [file]: json(bad) })
    expect(said).toHaveLength(1)
    expect(said[0]).toContain('malformed')
    expect(said[0]).toContain(key)
    expect(await inspected({ [file]: json(clean) })).toEqual([])
  })

  it.each([
    ['beyond the file', withHeader(JSON.stringify({ a: tensor(0, 9) }), 4)],
    ['overlapping', withHeader(JSON.stringify({ a: tensor(0, 3), b: tensor(1, 4) }), 4)],
    [
      'a key with control characters',
      withHeader(JSON.stringify({ __metadata__: { 'a\u0001': 'x' }, a: tensor(0, 4) }), 4)
    ]
  ])('tensors of a safetensors: %s', async (_, bytes) => {
    const said = await inspected({ 'model.safetensors': bytes })
    expect(said).toHaveLength(1)
    expect(said[0]).toContain('malformed')
    expect(await inspected({ 'model.safetensors': withHeader(JSON.stringify({ a: tensor(0, 4) }), 4) })).toEqual([])
  })

  it('a GGUF that is cut, and one with a key of control characters', async () => {
    const whole = makeGguf({ seed: 1 })
    expect(await inspected({ 'm.gguf': whole })).toEqual([])
    expect((await inspected({ 'm.gguf': whole.subarray(0, whole.length - 32) })).join()).toContain('malformed')
    const odd = makeGguf({ seed: 1, metadata: { 'a\u0007b': 'x' } })
    expect((await inspected({ 'm.gguf': odd })).join()).toContain('control characters')
  })
})

describe('bounds', () => {
  /** Counts what is read of a file that is made as it is read. */
  async function bounded(name: string, sizeBytes: number, make: (offset: number, lengthBytes: number) => Uint8Array) {
    let readBytes = 0
    const { findings } = await inspectFiles([{ name, sizeBytes }], () => async (offset, lengthBytes) => {
      readBytes += lengthBytes
      return make(offset, Math.min(lengthBytes, sizeBytes - offset))
    })
    return { findings, readBytes }
  }

  it('a header of 100 MB is told by its length', async () => {
    const head = withHeader(' '.repeat(8))
    new DataView(head.buffer).setBigUint64(0, 99_000_000n, true)
    const { findings, readBytes } = await bounded('m.safetensors', 200_000_000, (at, n) => head.subarray(at, at + n))
    expect(findings[0]?.what).toContain('99000000 bytes')
    expect(readBytes).toBeLessThan(1024)
  })

  it('a GGUF whose header does not end within 24 MiB is told', async () => {
    const metadata = { a: 'x'.repeat(25 << 20), 'tokenizer.chat_template': "{{ x|attr('y') }}" }
    const file = makeGguf({ seed: 1, metadata })
    const { findings, readBytes } = await bounded('m.gguf', file.length, (at, n) => file.subarray(at, at + n))
    expect(findings.map(({ what }) => what)).toEqual(['its header has more than 24 MiB, more than any model needs'])
    expect(readBytes).toBeLessThan(27 << 20)
  })

  it.each([
    ['a text of escaped quotes without end', `{{ "${'\\"'.repeat(500_000)} }}`],
    ['many texts', `{{ ${'"a" '.repeat(250_000)} }}`],
    ['many blocks without end', '{{ '.repeat(330_000)],
    ['many dots', `{{ ${'. '.repeat(500_000)} }}`],
    ['one long name', `{{ ${'_'.repeat(1_000_000)} }}`]
  ])('%s are read once', (_, template) => {
    const half = template.slice(0, template.length / 2)
    const cpuOf = (text: string): number => {
      const before = process.threadCpuUsage()
      inspectText('chat_template.jinja', utf8.encode(text))
      const { user, system } = process.threadCpuUsage(before)
      return user + system
    }
    cpuOf(half)
    // quadratic would be four times as long, and minutes
    expect(cpuOf(template)).toBeLessThan(3 * cpuOf(half) + 100_000)
  })

  it('a million keys give few findings, and deep nesting ends', async () => {
    const keys = utf8.encode(`{${Array.from({ length: 1_000_000 }, (_, i) => `"\\u0001${i}":1`).join(',')}}`)
    const many = await bounded('config.json', keys.length, (at, n) => keys.subarray(at, at + n))
    expect(many.findings.length).toBeLessThanOrEqual(60)
    const deep = utf8.encode('['.repeat(1_000_000))
    const { findings } = await bounded('config.json', deep.length, (at, n) => deep.subarray(at, at + n))
    expect(findings).toHaveLength(1)
    expect(findings[0]?.what).toContain('nested deeper')
    const whole = `{"a":"${'x'.repeat(16 * 2 ** 20 - 8)}"}`
    const files = { 'a/config.json': whole, 'b/config.json': '{"auto_map":{}}', 'm.safetensors': withHeader('{}') }
    const { findings: found, unread } = await inspectFiles(
      Object.entries(files).map(([name, { length }]) => ({ name, sizeBytes: length })),
      (name) => async (at, n) => Buffer.from(files[name as keyof typeof files].slice(at, at + n))
    )
    expect([found, unread]).toEqual([[], ['b/config.json']])
    const { readBytes } = await bounded('config.json', 2 ** 31, () => new Uint8Array(0))
    expect(readBytes).toBe(0)
  })
})
