// The Helm chart, rendered by helm itself, and the examples beside it: the resources are those of Kubernetes' API (types and fields from its
// OpenAPI description, as kubernetes-models has them), fit together, and configure a daemon. Helm is the program SVC_HELM, else `helm`.
import { execFile, spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { DaemonSet } from 'kubernetes-models/apps/v1'
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1'
import { ConfigMap, Pod, Service, ServiceAccount } from 'kubernetes-models/v1'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { mergeConfig } from '../packages/daemon/src/config/config.ts'
import { parseConfigText } from '../packages/daemon/src/config/file.ts'
import { USAGE } from '../packages/daemon/src/flags.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url))
const chart = join(root, 'deploy/helm/svc')
const HELM = process.env.SVC_HELM ?? 'helm'
const haveHelm = spawnSync(HELM, ['version', '--short']).status === 0

/** What each kind is checked by. */
const KINDS = { ConfigMap, DaemonSet, NetworkPolicy, Pod, Service, ServiceAccount }
const TYPES: Readonly<Record<keyof typeof KINDS, string>> = {
  ConfigMap: 'kubernetes-models/v1',
  DaemonSet: 'kubernetes-models/apps/v1',
  NetworkPolicy: 'kubernetes-models/networking.k8s.io/v1',
  Pod: 'kubernetes-models/v1',
  Service: 'kubernetes-models/v1',
  ServiceAccount: 'kubernetes-models/v1'
}

// biome-ignore lint/suspicious/noExplicitAny: resources of any kind, looked into field by field
type Resource = any

const SETS: Readonly<Record<string, readonly string[]>> = {
  'the defaults': [],
  'everything on': [
    'mirror.hub.onDemand=true',
    'mirror.hub.onDemandAllow={acme/*}',
    'mirror.hub.onDemandAnonymous=true',
    'mirror.names={store.example}',
    'swarm.trackers={http://tracker.models:6969/announce}',
    'swarm.trusted={10.0.0.0/8}',
    'swarm.uploadLimit=125000000',
    'image.tag=v1',
    'secretEnv[0].name=SVC_HF_TOKEN',
    'secretEnv[0].secretName=hub',
    'secretEnv[0].key=token',
    'imagePullSecrets[0].name=pull',
    'networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=ops',
    'networkPolicy.mirrorFrom[0].podSelector.matchLabels.app=llama',
    'tolerations[0].operator=Exists',
    'nodeSelector.gpu=yes',
    'priorityClassName=system-node-critical',
    'config=[hub]\nskip_unrecognized = true'
  ],
  'everything off': [
    'mirror.hub.enabled=false',
    'mirror.oci.enabled=false',
    'metrics.enabled=false',
    'swarm.enabled=false',
    'networkPolicy.enabled=false',
    'prepare.enabled=false',
    `image.digest=sha256:${'a'.repeat(64)}`
  ]
}

let scratch: string
let env: NodeJS.ProcessEnv
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'svc-helm-'))
  const own = (name: string): string => join(scratch, name)
  env = { ...process.env, HELM_CACHE_HOME: own('cache'), HELM_CONFIG_HOME: own('config'), HELM_DATA_HOME: own('data') }
})
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const resourcesOf = (yaml: string): Resource[] =>
  parseAllDocuments(yaml).flatMap((document) => {
    expect(document.errors).toEqual([])
    return document.toJS() ?? []
  })

async function rendered(values: readonly string[]): Promise<Resource[]> {
  const set = ['image.repository=registry.example/svc', ...values].flatMap((value) => ['--set', value])
  const { stdout } = await run(HELM, ['template', 'models', chart, '--namespace', 'ai', ...set], { env })
  return resourcesOf(stdout)
}

/** With values of any form, such as no `--set` can give. */
async function renderedFrom(release: string, values: object): Promise<Resource[]> {
  const file = join(mkdtempSync(join(scratch, 'values-')), 'values.json')
  writeFileSync(file, JSON.stringify({ image: { repository: 'registry.example/svc' }, ...values }))
  const { stdout } = await run(HELM, ['template', release, chart, '--namespace', 'ai', '--values', file], { env })
  return resourcesOf(stdout)
}

const examples = globSync('deploy/kubernetes/*.yaml', { cwd: root })
const exampleResources = (): Resource[] =>
  examples.flatMap((path) => resourcesOf(readFileSync(join(root, path), 'utf8')))

function validate(resource: Resource): void {
  const Kind = KINDS[resource.kind as keyof typeof KINDS]
  expect(Kind, resource.kind).toBeDefined()
  new Kind(resource).validate()
}

/** The compiler refuses fields that the API does not have, which the validators let pass. */
async function typeErrors(resources: readonly Resource[]): Promise<string> {
  const folder = mkdtempSync(join(scratch, 'types-'))
  const lines = resources.map(
    (each, i) =>
      `export const r${i}: import('${TYPES[each.kind as keyof typeof KINDS]}').I${each.kind} = ${JSON.stringify(each, null, 1)}`
  )
  writeFileSync(join(folder, 'resources.ts'), `${lines.join('\n')}\n`)
  const options = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    module: 'nodenext',
    types: [],
    paths: { 'kubernetes-models/*': [join(root, 'node_modules/kubernetes-models/*')] }
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['resources.ts'] }))
  return run(join(root, 'node_modules/.bin/tsc'), ['-p', folder], { cwd: folder }).then(
    () => '',
    (error: { stdout: string }) => error.stdout
  )
}

describe.skipIf(!haveHelm)('the chart, rendered by helm', () => {
  it('passes helm’s own check', async () => {
    const { stdout } = await run(HELM, ['lint', chart, '--strict', '--set', 'image.repository=registry.example/svc'], {
      env
    })
    expect(stdout).toContain('0 chart(s) failed')
  })

  it.each([
    ['no image', 'image.repository='],
    ['an unknown value', 'sotre.hostPath=/x'],
    ['a port that is none', 'mirror.hub.port=70000'],
    ['a relative path', 'store.hostPath=var/lib/svc'],
    ['a digest that is none', 'image.digest=sha256:x'],
    ['a probe that gives up before its command', 'probes.timeoutSeconds=5']
  ])('refuses %s', async (_, value) => {
    await expect(rendered([value])).rejects.toMatchObject({ code: 1 })
  })

  it('renders resources of Kubernetes’ API with valid fields', async () => {
    const all: Resource[] = []
    for (const values of Object.values(SETS)) all.push(...(await rendered(values)))
    for (const resource of all) validate(resource)
    expect(await typeErrors([...all, ...exampleResources()])).toBe('')
    const wrong = structuredClone(all.find(({ kind }) => kind === 'DaemonSet'))
    wrong.spec.template.spec.containers[0].livenessprobe = {}
    expect(await typeErrors([wrong])).toContain('livenessprobe')
  })

  it.each(Object.keys(SETS))('fits together with %s', async (name) => {
    const all = await rendered(SETS[name]!)
    const of = (kind: string): Resource => all.find((each) => each.kind === kind)
    const { template, selector } = of('DaemonSet').spec
    const [container] = template.spec.containers
    const ports = new Set((container.ports ?? []).map((port: Resource) => port.name))
    expect(template.metadata.labels).toMatchObject(selector.matchLabels)
    const service = of('Service')
    expect(service === undefined).toBe(name === 'everything off')
    for (const { targetPort } of service?.spec.ports ?? []) expect(ports).toContain(targetPort)
    if (service !== undefined) expect(template.metadata.labels).toMatchObject(service.spec.selector)
    const policy = of('NetworkPolicy')
    expect(policy === undefined).toBe(name === 'everything off')
    for (const rule of [...(policy?.spec.ingress ?? []), ...(policy?.spec.egress ?? [])])
      for (const { port } of rule.ports ?? []) if (port !== 53) expect(ports).toContain(port)
    const mounts = container.volumeMounts.map((mount: Resource) => mount.name)
    expect(mounts.sort()).toEqual(template.spec.volumes.map((volume: Resource) => volume.name).sort())
    expect(template.spec.automountServiceAccountToken).toBe(false)
    expect(container.securityContext).toMatchObject({ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false })
    expect(template.spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10_001 })
  })

  it.each([
    ['a newline', '/x\n  hostNetwork'],
    ['a NUL', '/x\0'],
    ['a colon', '/x:rw']
  ])('refuses a path with %s', async (_, hostPath) => {
    await expect(renderedFrom('models', { store: { hostPath } })).rejects.toMatchObject({ code: 1 })
  })

  it('keeps text as written, and never parses it as a field', async () => {
    const odd = {
      image: { repository: 'registry.example/svc', tag: '1.10' },
      nameOverride: '123',
      fullnameOverride: '0x1f',
      store: { hostPath: '/data #1' },
      socket: { hostPath: "/run/it's {here}" },
      priorityClassName: 'true',
      imagePullSecrets: [{ name: '1e3' }],
      secretEnv: [{ name: 'SVC_HF_TOKEN', secretName: '1e3', key: 'no' }],
      mirror: { oci: { hostIP: '::1' }, names: ['a"b\n[swarm]\nenabled = false', '<&>'] },
      swarm: { trackers: ["http://a/'''\n\"]"], trusted: ['10.0.0.0/8'] },
      podLabels: { a: 'yes', b: '12' },
      podAnnotations: { c: 'x: y\n- z' },
      config: "[hub]\nskip_unrecognized = true\n# '''\n# ---\n# kind: Secret"
    }
    const all = await renderedFrom('1', odd)
    for (const resource of all) validate(resource)
    expect(await typeErrors(all)).toBe('')
    expect(all.map(({ kind }) => kind).sort()).toEqual([
      'ConfigMap',
      'DaemonSet',
      'NetworkPolicy',
      'Service',
      'ServiceAccount'
    ])
    const { metadata, spec } = all.find(({ kind }) => kind === 'DaemonSet')
    expect(metadata).toMatchObject({
      name: '0x1f',
      labels: { 'app.kubernetes.io/name': '123', 'app.kubernetes.io/instance': '1' }
    })
    const [container] = spec.template.spec.containers
    expect(container.image).toBe('registry.example/svc:1.10')
    expect(container.env).toEqual(
      expect.arrayContaining([
        { name: 'SVC_ROOT', value: '/data #1' },
        { name: 'SVC_SOCKET', value: "/run/it's {here}/svc.sock" },
        { name: 'SVC_HF_TOKEN', valueFrom: { secretKeyRef: { name: '1e3', key: 'no' } } }
      ])
    )
    expect(spec.template.spec).toMatchObject({ priorityClassName: 'true', imagePullSecrets: [{ name: '1e3' }] })
    expect(spec.template.spec.hostNetwork).toBeUndefined()
    expect(spec.template.spec.volumes.map(({ hostPath }: Resource) => hostPath?.path)).toContain('/data #1')
    expect(spec.template.spec.initContainers[0].command.slice(-2)).toEqual(['/data #1', "/run/it's {here}"])
    const text = all.find(({ kind }) => kind === 'ConfigMap').data['config.toml']
    const config: Resource = parseConfigText(text, 'config.toml')
    expect(config.swarm).toMatchObject({ enabled: true, trackers: odd.swarm.trackers })
    expect(config.mirror.names).toEqual(expect.arrayContaining(odd.mirror.names))
    expect(config.hub).toEqual({ skip_unrecognized: true })
  })

  it('confines its containers: no capabilities, only two host folders, and limits', async () => {
    const all = await rendered(SETS['everything on']!)
    const pod = all.find(({ kind }) => kind === 'DaemonSet').spec.template.spec
    for (const word of ['hostNetwork', 'hostPID', 'hostIPC', 'shareProcessNamespace'])
      expect(pod[word], word).toBeFalsy()
    expect(pod.securityContext.seccompProfile).toEqual({ type: 'RuntimeDefault' })
    const [container] = pod.containers
    expect(container.securityContext.capabilities).toEqual({ drop: ['ALL'] })
    expect(container.securityContext.privileged).toBeFalsy()
    expect(container.resources).toMatchObject({
      requests: { memory: expect.any(String) },
      limits: { memory: expect.any(String) }
    })
    const [prepare] = pod.initContainers
    expect(prepare.securityContext).toMatchObject({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true })
    expect(prepare.securityContext.capabilities.drop).toEqual(['ALL'])
    expect(prepare.env).toBeUndefined()
    const host = pod.volumes.flatMap(({ hostPath }: Resource) => (hostPath === undefined ? [] : [hostPath.path]))
    expect(host.sort()).toEqual(['/run/svc', '/var/lib/svc'])
  })

  it('probes paths that svcd answers', async () => {
    const [container] = (await rendered([])).find(({ kind }) => kind === 'DaemonSet').spec.template.spec.containers
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const { exec, timeoutSeconds } = container[probe]
      expect(USAGE.flatMap(([words]) => words.split(' | '))).toContain(exec.command.join(' '))
      // the commands give up after ten
      expect(timeoutSeconds).toBeGreaterThan(10)
    }
  })

  it.each(Object.keys(SETS))('writes a configuration that the daemon accepts, with %s', async (name) => {
    const all = await rendered(SETS[name]!)
    const text = all.find(({ kind }) => kind === 'ConfigMap').data['config.toml']
    const config = mergeConfig(parseConfigText(text, 'config.toml'), { root: '/x' }, {})
    const [container] = all.find(({ kind }) => kind === 'DaemonSet').spec.template.spec.containers
    const portOf = (wanted: string): unknown =>
      container.ports?.find((port: Resource) => port.name === wanted)?.containerPort
    const listens = (addr: string | undefined): unknown => (addr === undefined ? undefined : Number(addr.split(':')[1]))
    expect([portOf('hub'), portOf('oci'), portOf('metrics')]).toEqual(
      [config.mirror.hubAddr, config.mirror.ociAddr, config.metrics.addr].map(listens)
    )
    expect(config.swarm.enabled).toBe(name !== 'everything off')
    if (config.swarm.enabled) expect(portOf('peer')).toBe(listens(config.swarm.peerAddr))
    if (name === 'everything off') return
    expect(config.mirror.names).toEqual(expect.arrayContaining(['models-svc.ai', 'models-svc.ai.svc', '127.0.0.1']))
    const allowed = ['acme/m', 'evil/m'].filter((repo) => config.mirror.onDemand?.allows(repo))
    expect(allowed).toEqual(name === 'everything on' ? ['acme/m'] : [])
    expect(config.hub.skipUnrecognized).toBe(true)
  })
})

describe('the examples', () => {
  it('are resources of Kubernetes’ API', () => {
    const all = exampleResources()
    expect(all.map(({ kind }) => kind)).toEqual(['Pod', 'Pod'])
    for (const resource of all) validate(resource)
    expect(all.flatMap(({ spec }) => spec.volumes).filter((volume) => volume.image !== undefined).length).toBe(1)
  })

  it('see the store read-only', () => {
    for (const { spec } of exampleResources())
      for (const { volumeMounts } of spec.containers)
        for (const mount of volumeMounts) expect(mount).toMatchObject({ readOnly: true })
  })
})
