// What proves who a user is: one platform, and what it needs.

import type { PlatformBody, SignupBody } from "../api.js";

/** Fields that describe the device, beside the platform. */
type Identifiers =
  | "segment_id" | "custom_config_id" | "login_device_id" | "simple_cuid" | "cuid_v2" | "cuid" | "imei" | "oaid"
  | "idfa" | "idfv" | "gaid" | "platform" | "appsflyer_id" | "app_instance_id" | "uuid";

export type DeviceFields = Pick<PlatformBody, Identifiers>;
/** Such as `device`, `email_code` or `search_vendor_id`. */
export type SignInPlatform = Exclude<keyof PlatformBody, Identifiers>;
export type SignInInfo<P extends SignInPlatform> = NonNullable<PlatformBody[P]>;
export type SignUpPlatform = Exclude<keyof SignupBody, Identifiers>;
export type SignUpInfo<P extends SignUpPlatform> = NonNullable<SignupBody[P]>;
