import type { ImportPlan } from '@svc/client'
import { count, formatBytes } from '../format.ts'
import type { Machine } from './machine.ts'

type Artifact = ImportPlan['artifacts'][number]
/** `tight`: it runs, but little else does at the same time. */
type Fit = 'fits' | 'tight' | 'no'

/** The share of a card that a model may take: the screen and the driver need the rest. */
const VRAM_SHARE = 0.9
/** The share of the machine's memory, so that other programs keep running. */
const RAM_SHARE = 0.75
const TIGHT_SHARE = 0.95

interface Judged {
  readonly artifact: Artifact
  /** Weights, cache and compute buffer; only weights if the rest is unknown. */
  readonly needBytes: number
  readonly fit: Fit
  readonly why: string
}

function judge(artifact: Artifact, { memory }: ImportPlan, machine: Machine): Judged {
  const beside = memory === undefined || 'unknown' in memory ? 0 : memory.cacheBytes + memory.computeBytes
  const needBytes = (artifact.weightsBytes ?? artifact.bytes) + beside
  return { artifact, needBytes, ...fitOf(needBytes, artifact.bytes - artifact.bytesPresent, machine) }
}

/** Whether so many bytes of memory, and of disk, can be had. */
export function fitOf(needBytes: number, fetchBytes: number, machine: Machine): Pick<Judged, 'fit' | 'why'> {
  const { ramBytes, vramBytes, diskBytes = Number.POSITIVE_INFINITY } = machine
  if (fetchBytes > diskBytes) return { fit: 'no', why: `only ${formatBytes(diskBytes)} of disk space is free` }
  if (vramBytes > 0 && needBytes <= vramBytes * VRAM_SHARE)
    return { fit: 'fits', why: `${formatBytes(vramBytes)} of VRAM` }
  const ram = `${formatBytes(ramBytes)} of RAM`
  if (needBytes <= ramBytes * RAM_SHARE) return { fit: 'fits', why: ram }
  const both = vramBytes > 0 ? `${ram} and ${formatBytes(vramBytes)} of VRAM` : ram
  return { fit: needBytes <= (ramBytes + vramBytes) * TIGHT_SHARE ? 'tight' : 'no', why: both }
}

/** The artifacts of a plan, smallest first. */
const bySize = ({ artifacts }: ImportPlan): readonly Artifact[] =>
  [...artifacts].sort((a, b) => a.bytes - b.bytes || (a.quant < b.quant ? -1 : 1))

/** The quants in the order of the table. */
export const quantsBySize = (plan: ImportPlan): string[] => bySize(plan).map(({ quant }) => quant)

/** The artifacts of a plan, smallest first, perhaps numbered from 1; given a machine, whether they fit. */
export function artifactTable(
  plan: ImportPlan,
  machine?: Machine,
  { isNumbered = false }: { readonly isNumbered?: boolean } = {}
): string[][] {
  const numbered = (cells: string[], number: number | string): string[] =>
    isNumbered ? [`  ${String(number).padStart(2)}`, cells[0]!.trimStart(), ...cells.slice(1)] : cells
  const areNamed = plan.artifacts.some(({ upstream }) => upstream !== undefined)
  const rows = bySize(plan)
    .map((artifact) => {
      const { quant, bytes, files, bytesPresent } = artifact
      const judged = machine && plan.memory && judge(artifact, plan, machine)
      return [
        `  ${quant}`,
        formatBytes(bytes),
        count(files, 'file'),
        ...(judged === undefined ? [] : [formatBytes(judged.needBytes), judged.fit]),
        bytesPresent === 0 ? '' : bytesPresent >= bytes ? 'here' : `${formatBytes(bytesPresent)} here`,
        ...(areNamed ? [artifact.upstream ?? ''] : [])
      ]
    })
    .map((cells, i) => numbered(cells, i + 1))
  const memory = machine && plan.memory ? ['MEMORY', 'FIT'] : []
  const head = ['  QUANT', 'SIZE', 'FILES', ...memory, '', ...(areNamed ? ['PUBLISHED AS'] : [])]
  return [numbered(head, ''), ...rows]
}

/** The largest artifact that fits, or else the largest that is tight. */
function recommended(plan: ImportPlan, machine: Machine): Judged | undefined {
  if (plan.memory === undefined) return undefined
  const judged = plan.artifacts.map((artifact) => judge(artifact, plan, machine))
  const best = (fit: Fit): Judged | undefined =>
    judged.filter((each) => each.fit === fit).sort((a, b) => b.needBytes - a.needBytes)[0]
  return best('fits') ?? best('tight')
}

/** The quant to choose without another reason; undefined if none fits. */
export const recommendedQuant = (plan: ImportPlan, machine: Machine): string | undefined =>
  recommended(plan, machine)?.artifact.quant

/** What is recommended, and why; undefined if nothing is known of the memory. */
export function adviceOf(plan: ImportPlan, machine: Machine): string | undefined {
  if (plan.memory === undefined) return undefined
  const chosen = recommended(plan, machine)
  const [first] = plan.artifacts
  if (chosen === undefined) return `none of them fits: ${first ? judge(first, plan, machine).why : 'there is none'}`
  const { artifact, needBytes, fit, why } = chosen
  const what =
    'unknown' in plan.memory
      ? `its weights alone, since ${plan.memory.unknown}`
      : `about ${formatBytes(needBytes)} at ${count(plan.memory.contextTokens, 'token')}`
  return `the largest that ${fit === 'fits' ? 'fits' : 'just fits'} is ${artifact.quant}: ${what}, of ${why}`
}

/** The table and the advice, for programs. */
export const fitsOf = (plan: ImportPlan, machine: Machine) =>
  plan.artifacts.map((artifact) => {
    const { needBytes, fit } = judge(artifact, plan, machine)
    return { quant: artifact.quant, needBytes, fit }
  })
