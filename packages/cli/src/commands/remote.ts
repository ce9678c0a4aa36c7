import { CliError, usage } from '../errors.ts'
import { count, formatBytes } from '../format.ts'
import { type HubSource, tryParseHubSource } from '../hub/hub-source.ts'
import { thisMachine } from '../hub/machine.ts'
import { adviceOf, artifactTable, fitsOf } from '../hub/plan-table.ts'
import type { Session } from '../session.ts'
import { sayingWhatWaits } from '../slow-answer.ts'

/** `svc show hf org/name [--context N]`: what an import would bring, and whether it fits this machine. */
export async function showHf(session: Session, text: string, options: { readonly context?: string }): Promise<void> {
  const source = tryParseHubSource(text)
  if (source === undefined) throw new CliError('usage', `"${text}" is not a repository of the hub`)
  const asked = planWithFit(session, source, contextOf(options.context))
  const plan = await sayingWhatWaits(session, `asking the hub what ${source.repo} contains`, asked)
  if (session.json) return session.document(plan)
  const { machine } = plan
  if (session.quiet) return plan.quants.forEach((each) => session.print(each))
  const { memory, totals, gated = false, license = 'none found' } = plan
  const { ramBytes, vramBytes, diskBytes } = machine
  const facts = [
    ['  commit', plan.commit],
    ['  license', license],
    ['  gated', gated ? 'yes, and you have access' : 'no'],
    [
      '  whole',
      `${count(totals.files, 'file')}, ${formatBytes(totals.bytes)}; an import of all fetches ${formatBytes(totals.fetchBytes)}`
    ],
    ...(memory === undefined || 'unknown' in memory
      ? [['  memory', `weights only: ${memory?.unknown}`]]
      : [
          [
            '  memory',
            `weights, ${formatBytes(memory.cacheBytes)} of cache for ${count(memory.contextTokens, 'token')}, about ${formatBytes(memory.computeBytes)} to compute`
          ]
        ]),
    [
      '  machine',
      [
        `${formatBytes(ramBytes)} of RAM`,
        ...(vramBytes > 0 ? [`${formatBytes(vramBytes)} of VRAM`] : []),
        ...(diskBytes === undefined ? [] : [`${formatBytes(diskBytes)} of disk free`])
      ].join(', ')
    ]
  ]
  session.print(plan.repo)
  session.table(facts)
  session.table(artifactTable(plan, machine))
  const advice = adviceOf(plan, machine)
  if (advice !== undefined) session.note(advice)
  for (const warning of plan.warnings) session.note(`warning: ${warning}`)
  session.note(`import one with: svc import hf ${plan.repo}:QUANT`)
}

/** The plan of importing everything that a source names, and what of it fits this machine. */
export async function planWithFit(session: Session, { repo, revision, quant }: HubSource, context: number) {
  const plan = await session.client.planHf({
    repo,
    names: 'normalized',
    aux: ['one'],
    context,
    ...(revision !== undefined && { revision }),
    ...(quant !== undefined && { quants: quant.split(',') })
  })
  const machine = await thisMachine(session)
  return { ...plan, machine, fits: fitsOf(plan, machine) }
}

/** `0`: the context length of the model. @throws CliError */
function contextOf(text = '0'): number {
  if (/^\d{1,8}$/.test(text)) return Number(text)
  throw usage(`"${text}" is not a number of tokens`, '--context 8192')
}
