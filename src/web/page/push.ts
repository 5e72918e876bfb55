import { post, Refused } from './client.ts'
import { TEXTS } from './texts.ts'

/** Whether this browser shows notifications of this page: in a secure context alone. */
export function isPushPossible(): boolean {
  return isSecureContext && 'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window
}

/** Whether this device is told. */
export async function isPushOn(): Promise<boolean> {
  if (!isPushPossible()) return false
  const registration = await navigator.serviceWorker.getRegistration()
  return (await registration?.pushManager.getSubscription()) != null
}

/** Switches notifications on or off for this device; resolves with how they are now. Rejects with `Refused`. */
export async function switchPush(wanted: boolean, publicKey: string): Promise<boolean> {
  const registration = await navigator.serviceWorker.register('/sw.js')
  await navigator.serviceWorker.ready
  const known = await registration.pushManager.getSubscription()
  if (!wanted) {
    await post('push/off', {})
    await known?.unsubscribe()
    return false
  }
  if ((await Notification.requestPermission()) !== 'granted') throw new Refused({ problem: TEXTS.pushDenied })
  const options = { userVisibleOnly: true, applicationServerKey: bytesOf(publicKey) }
  const subscription = await registration.pushManager.subscribe(options).catch((error: unknown) => {
    throw new Refused({ problem: error instanceof Error ? error.message : TEXTS.pushDenied })
  })
  const { endpoint, keys } = subscription.toJSON()
  await post('push/on', { subscription: { endpoint, keys } })
  return true
}

function bytesOf(base64url: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(text, letter => letter.charCodeAt(0))
}
