import { Qr } from "../parts/qr.tsx"
export function ModelsView() {
  if (location.hash === "#q") return Qr({text:"x",label:"x"})
  return null
}
