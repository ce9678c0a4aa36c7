import type { OwnersChoice, PlannedArtifacts } from '@svc/classify'
import { type BroughtModel, SIGNATURE, type TrustRule, type TrustRules } from '@svc/internal-state'
import { formatRepoId, type RepoId } from '@svc/ref'
import { companionsOf, planCompanions } from './companions.ts'
import type { Ingested } from './ingest.ts'
import type { PlannedImport } from './plan.ts'

/** A planned import with the rule for signatures that applies to its names, here and at its source. */
export interface RuledImport extends PlannedImport {
  readonly rule: TrustRule | undefined
}

export function ruledImport(repo: RepoId, plan: PlannedImport, trust: TrustRules): RuledImport {
  const { origin, annotations } = plan.source
  const { asked, repo: answered, onDemand } = origin
  // a commit that a mirror's client asked for has a name that nobody typed
  const typed = onDemand === true ? (asked ?? answered) : undefined
  const claimed = [answered, asked, annotations['svc.hf.repo']]
  const rule = trust.ruleFor({ typed: [typed ?? formatRepoId(repo)], claimed })
  return { ...withSignature(plan, rule), rule }
}

/** A rule needs the signature and all companions, whatever the selection, also for imports that a mirror's client caused. */
function withSignature(plan: PlannedImport, rule: TrustRule | undefined): PlannedImport {
  const { source, recognition, files } = plan
  const file = files.get(SIGNATURE)
  if (rule === undefined || file === undefined) return plan
  const { onDemand, ...origin } = source.origin
  const beside = onDemand === true ? planCompanions({ origin }, files, recognition.uses) : plan.companions
  const companions = {
    files: new Map([...beside.files, [SIGNATURE, file]]),
    omitted: beside.omitted.filter(({ path }) => path !== SIGNATURE)
  }
  return { ...plan, companions }
}

/** The companions of an import, and all files that its signature must cover. */
export function besideOf(
  { source, recognition, companions: planned, rule }: RuledImport,
  ingested: Ingested,
  { artifacts: [first] }: PlannedArtifacts,
  choice: OwnersChoice
) {
  const companions = companionsOf(planned, source, ingested.companions)
  const entries = recognition.entries.map(({ kind, name }) => {
    const { digest, sizeBytes: size } = ingested.blobs.get(name)!
    return { kind, name, digest, size }
  })
  const brought: BroughtModel = {
    entries,
    // all artifacts of an import have the same ones
    annotations: { ...first?.annotations, ...source.annotations },
    config: first?.modelConfig.upstream,
    companions: companions?.document.files ?? [],
    omitted: planned.omitted,
    choice
  }
  // mirrors check the signature again later
  const isKept = source.origin.onDemand !== true || rule?.mode === 'require'
  return { companions: isKept ? companions : undefined, brought }
}
